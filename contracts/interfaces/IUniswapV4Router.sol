// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {PoolKey} from "./IPoolManager.sol";

/// @title The least that trades in pools of Uniswap v4, whose manager can only be called back.
/// @notice One pool without hooks, an exact amount, of two tokens. The caller pays from its own allowance to this contract, and the caller
/// receives: nobody else is ever named. It has no owner, keeps no token and no allowance, and can't change.
///
/// Pools with hooks are refused, since a hook can take any part of a swap, and with them pools of a dynamic fee, which have one. Pools of ether
/// (`currency0` of zero) are refused, too. A swap is for the whole amount or reverts, also where the pool's liquidity ends before. Errors of the
/// manager and of tokens are passed on.
interface IUniswapV4Router {
    /// @notice The pool has a hook, or trades ether.
    error UnsupportedPool(address currency0, address hooks);
    /// @notice Zero, or more than the manager counts.
    error AmountOutOfRange(uint256 amount);
    /// @notice The pool trades no more than `available` of the exact amount.
    error PartialSwap(uint256 available, uint256 amount);
    /// @notice An exact input would bring less than the minimum.
    error InsufficientOutput(uint256 amountOut, uint256 minimum);
    /// @notice An exact output would cost more than the maximum.
    error ExcessiveInput(uint256 amountIn, uint256 maximum);
    /// @notice Only the manager may call back.
    error NotPoolManager(address caller);
    /// @notice How a quote ends its swap, so that nothing of it remains. Never leaves this contract.
    error Quoted(uint256 amountIn, uint256 amountOut);

    /// @notice Sells exactly `amountIn`, for at least `minAmountOut`.
    function swapExactIn(
        PoolKey calldata key,
        bool zeroForOne,
        uint256 amountIn,
        uint256 minAmountOut
    ) external returns (uint256 amountOut);

    /// @notice Buys exactly `amountOut`, for at most `maxAmountIn`.
    function swapExactOut(
        PoolKey calldata key,
        bool zeroForOne,
        uint256 amountOut,
        uint256 maxAmountIn
    ) external returns (uint256 amountIn);

    /// @notice What `swapExactIn` would bring now. It is a call rather than a view, because it swaps and undoes the swap.
    function quoteExactIn(PoolKey calldata key, bool zeroForOne, uint256 amountIn) external returns (uint256 amountOut);

    /// @notice What `swapExactOut` would cost now; likewise.
    function quoteExactOut(
        PoolKey calldata key,
        bool zeroForOne,
        uint256 amountOut
    ) external returns (uint256 amountIn);

    /// @notice For the manager alone, within a swap or quote of this contract.
    function unlockCallback(bytes calldata data) external returns (bytes memory);

    /// @notice The square root of the pool's price, of token 1 per token 0, times 2^96; zero for a pool that there is not. So a caller can see
    /// whether a price has moved before it does anything that costs more.
    function sqrtPriceOf(PoolKey calldata key) external view returns (uint160 sqrtPriceX96);

    /// @notice The manager of the pools.
    function poolManager() external view returns (address);
}
