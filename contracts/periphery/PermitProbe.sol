// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title PermitProbe
/// @notice Measures what a call of a token does to an allowance, without a transaction. It is never deployed: `eth_call` runs its creation code
/// with the arguments appended. The constructor returns two words: the allowance before the call and after it.
contract PermitProbe {
    /// @dev As much gas as the settler gives a permit: one that needs more would fail there.
    uint256 private constant PERMIT_GAS = 200_000;

    /// @param token Is called, and asked for the allowance.
    /// @param owner Whose tokens are allowed.
    /// @param spender Who may take them.
    /// @param permit Call data for the token. Whether the call succeeds does not matter.
    constructor(IERC20 token, address owner, address spender, bytes memory permit) {
        uint256 before = token.allowance(owner, spender);
        // Same as address(token).call{gas: PERMIT_GAS}(permit), without copying the answer, which a hostile token can make long.
        assembly ("memory-safe") {
            pop(call(PERMIT_GAS, token, 0, add(permit, 0x20), mload(permit), 0x00, 0x00))
        }
        uint256 allowed = token.allowance(owner, spender);
        // Same as return (before, allowed), which Solidity does not have in a constructor.
        assembly ("memory-safe") {
            mstore(0x00, before)
            mstore(0x20, allowed)
            return(0x00, 0x40)
        }
    }
}
