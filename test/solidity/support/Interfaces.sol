// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @notice Setting up a proxy of the curve book or the entrypoint.
interface IOwnerSetup {
    function initialize(address owner) external;
}

/// @notice Setting up a proxy of the custodian.
interface ICustodianSetup {
    function initialize(address owner, uint256 delaySec) external;
}

/// @notice A token that tests can make more of.
interface IMintableToken is IERC20 {
    function mint(address to, uint256 amount) external;
    function decimals() external view returns (uint8);
}

/// @notice The token with permits of DAI.
interface IDaiPermitToken is IMintableToken {
    function DOMAIN_SEPARATOR() external view returns (bytes32);
}
