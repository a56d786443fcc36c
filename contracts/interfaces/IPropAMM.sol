// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title What routers of proprietary market makers expect of a venue.
/// @notice Same functions, structs and event as the interface of that name that routers publish, so that ids and topics agree.
///
/// The caller pays first: it transfers `amountIn` of `tokenIn` to the venue and calls `swap` in the same transaction. What a transaction leaves
/// with a venue can be taken by the next caller.
interface IPropAMM {
    /// @notice A trade is done. `amountOut` is what reached `recipient`, measured by its balance.
    event Swapped(
        address indexed sender,
        address indexed tokenIn,
        address indexed tokenOut,
        uint256 amountIn,
        uint256 amountOut,
        address recipient
    );

    /// @notice `token0` < `token1`.
    struct TokenPair {
        address token0;
        address token1;
    }

    /// @notice Whether some amount can be swapped in this direction now.
    function isActive(address tokenIn, address tokenOut) external view returns (bool active);

    /// @notice Every pair once, active or not.
    function getPairs() external view returns (TokenPair[] memory pairs);

    /// @notice What `swap` of this amount would send now. Needs no balance and no allowance; reverts when the swap would revert because of the
    /// market's state or the amount.
    function quote(address tokenIn, address tokenOut, uint256 amountIn) external view returns (uint256 amountOut);

    /// @notice Sells exactly `amountIn`, and reverts if less than `minAmountOut` would reach `recipient`.
    /// @param deadline last second, inclusive, at which the swap may execute.
    /// @return amountOut what reached `recipient`, measured by its balance.
    function swap(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut,
        address recipient,
        uint256 deadline
    ) external returns (uint256 amountOut);
}
