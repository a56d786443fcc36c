// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title PermitProbe
/// @notice What a call of a token leaves of an allowance, without anything being sent. It is never deployed: `eth_call` runs its creation code,
/// arguments behind it. What the constructor answers is two words: the allowance before the call and after it.
contract PermitProbe {
    /// @dev As much as the settler gives a permit: what takes more comes to nothing there.
    uint256 private constant PERMIT_GAS = 200_000;

    /// @param token Called, and asked.
    /// @param owner Whose allowance.
    /// @param spender For whom.
    /// @param permit Call data of the token. Whether it succeeds does not matter.
    constructor(IERC20 token, address owner, address spender, bytes memory permit) {
        uint256 before = token.allowance(owner, spender);
        // Same as address(token).call{gas: PERMIT_GAS}(permit), with nothing of its answer copied: a hostile one may be long.
        assembly ("memory-safe") {
            pop(call(PERMIT_GAS, token, 0, add(permit, 0x20), mload(permit), 0x00, 0x00))
        }
        uint256 allowed = token.allowance(owner, spender);
        // Same as return (before, allowed), which a constructor can't.
        assembly ("memory-safe") {
            mstore(0x00, before)
            mstore(0x20, allowed)
            return(0x00, 0x40)
        }
    }
}
