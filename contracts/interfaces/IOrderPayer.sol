// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice What the entrypoint expects of the settler.
interface IOrderPayer {
    /// @notice Brings `amount` of `token` into the vault. Entrypoint only, and only within a call of `swapOrder` by the settler.
    /// @param payment As given to `swapOrder`.
    function pay(uint256 amount, bytes calldata payment, address token) external;
}
