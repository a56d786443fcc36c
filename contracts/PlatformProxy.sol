// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";
import {ERC1967Utils} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Utils.sol";

/// @title PlatformProxy
/// @notice OpenZeppelin's ERC-1967 proxy, compiled with the same settings as what runs behind it, so that the source of everything on the
/// chain can be verified from one compiler input. Whoever owns the implementation's storage upgrades it (UUPS). Only the way that every
/// call takes is written anew, for less gas.
contract PlatformProxy is ERC1967Proxy {
    /// @param implementation The code that runs behind this address until the first upgrade.
    /// @param initialization Call of its initializer.
    constructor(address implementation, bytes memory initialization) ERC1967Proxy(implementation, initialization) {}

    fallback() external payable override {
        bytes32 slot = ERC1967Utils.IMPLEMENTATION_SLOT;
        // Same as _delegate(_implementation()). Takes all of memory, since nothing of Solidity runs afterwards.
        assembly ("memory-safe") {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), sload(slot), 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if done {
                return(0, returndatasize())
            }
            revert(0, returndatasize())
        }
    }
}
