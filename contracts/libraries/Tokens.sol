// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// @title Reads balances of ERC-20 tokens and moves them, in assembly, since every swap does and the compiler's own code would cost more gas.
/// @notice Transfers follow the rule of OpenZeppelin's SafeERC20: a token may answer `true` or nothing at all; it must have code.
/// A call that fails reverts with the token's own reason.
library Tokens {
    /// @dev A call of `balanceOf` returned less than 32 bytes, as it does on an address without code.
    error BalanceUnreadable(address token);

    /// @notice `account`'s balance of `token`, in its units. Reverts `BalanceUnreadable`, or with the token's own error.
    function balanceOf(address token, address account) internal view returns (uint256 units) {
        bool unknown;
        // Same as IERC20(token).balanceOf(account), in scratch space: 36 bytes from offset 28.
        assembly ("memory-safe") {
            mstore(0x00, 0x70a08231)
            mstore(0x20, account)
            if iszero(staticcall(gas(), token, 0x1c, 0x24, 0x00, 0x20)) {
                let reason := mload(0x40)
                returndatacopy(reason, 0x00, returndatasize())
                revert(reason, returndatasize())
            }
            units := mload(0x00)
            unknown := lt(returndatasize(), 0x20)
        }
        if (unknown) revert BalanceUnreadable(token);
    }

    /// @notice Transfers `amount` from the caller of this contract to `to`, by the caller's allowance. Reverts `SafeERC20FailedOperation` for an
    /// answer that is not valid, or with the token's own error.
    /// @return received By how much `to`'s balance rose; zero if it fell.
    function pull(address token, address to, uint256 amount) internal returns (uint256 received) {
        bool unknown;
        // Same as held = balanceOf(token, to), IERC20(token).safeTransferFrom(msg.sender, to, amount), holds = balanceOf(token, to) and
        // received = holds > held ? holds - held : 0, with the calls' data side by side in memory that is not reserved. A token that
        // returned a balance has code, so its empty answer to a transfer is a valid one. All answers are checked once, at the end, since a
        // revert undoes whatever followed an invalid one.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, 0x70a08231)
            mstore(add(data, 0x20), to)
            if iszero(staticcall(gas(), token, add(data, 0x1c), 0x24, 0x00, 0x20)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            unknown := lt(returndatasize(), 0x20)
            let held := mload(0x00)
            mstore(add(data, 0x40), 0x23b872dd)
            mstore(add(data, 0x60), caller())
            mstore(add(data, 0x80), to)
            mstore(add(data, 0xa0), amount)
            if iszero(call(gas(), token, 0, add(data, 0x5c), 0x64, 0x00, 0x20)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            let agreed := or(iszero(returndatasize()), and(gt(returndatasize(), 0x1f), eq(mload(0x00), 1)))
            unknown := or(unknown, iszero(agreed))
            if iszero(staticcall(gas(), token, add(data, 0x1c), 0x24, 0x00, 0x20)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            unknown := or(unknown, lt(returndatasize(), 0x20))
            let holds := mload(0x00)
            received := mul(gt(holds, held), sub(holds, held))
        }
        if (unknown) revert SafeERC20.SafeERC20FailedOperation(token);
    }

    /// @notice Sends `amount` from this contract to `to`. The caller must have read a balance of this token before, which proves that it has
    /// code. Reverts `SafeERC20FailedOperation` for an answer that is not valid, or with the token's own error.
    function push(address token, address to, uint256 amount) internal {
        bool known;
        // Same as IERC20(token).safeTransfer(to, amount), with the call's data in memory that is not reserved.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, 0xa9059cbb)
            mstore(add(data, 0x20), to)
            mstore(add(data, 0x40), amount)
            if iszero(call(gas(), token, 0, add(data, 0x1c), 0x44, 0x00, 0x20)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            known := or(iszero(returndatasize()), and(gt(returndatasize(), 0x1f), eq(mload(0x00), 1)))
        }
        if (!known) revert SafeERC20.SafeERC20FailedOperation(token);
    }
}
