// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice Names a pool of Uniswap v4.
struct PoolKey {
    /// The token with the lower address; zero for ether.
    address currency0;
    address currency1;
    /// Of the liquidity providers, in millionths of the input.
    uint24 fee;
    int24 tickSpacing;
    /// What the pool calls at each swap; zero for nothing.
    address hooks;
}

/// @notice A swap in a pool.
struct SwapParams {
    /// Token 0 is paid and token 1 received.
    bool zeroForOne;
    /// What is paid, as a negative number; or what is received.
    int256 amountSpecified;
    /// Where the swap stops, also before the amount is traded.
    uint160 sqrtPriceLimitX96;
}

/// @notice The part of Uniswap v4's PoolManager that the router calls.
interface IPoolManager {
    /// @notice Calls the caller's `unlockCallback` with `data`, and returns its answer. Reverts if anything is owed afterwards.
    function unlock(bytes calldata data) external returns (bytes memory);

    /// @notice Trades in a pool; what it changes is owed or due until the end of `unlock`.
    /// @return delta What the pool pays of token 0 in the upper half, of token 1 in the lower; negative for what it is owed.
    function swap(
        PoolKey calldata key,
        SwapParams calldata params,
        bytes calldata hookData
    ) external returns (int256 delta);

    /// @notice Notes the balance, so that `settle` counts what is transferred from here on.
    function sync(address currency) external;

    /// @notice Credits the caller with what the balance has risen by since `sync`.
    function settle() external payable returns (uint256 paid);

    /// @notice Pays out what is due.
    function take(address currency, address to, uint256 amount) external;

    /// @notice A word of the manager's storage, whose layout is part of its interface.
    function extsload(bytes32 slot) external view returns (bytes32 value);
}
