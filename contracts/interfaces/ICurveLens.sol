// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title Everything that can be traded now, in one call.
/// @notice For routers and simulators, off-chain or on. It holds nothing, has no owner and can't change; whatever it says is computed by
/// the live contracts, so it agrees with `IEntrypoint.quote` to the unit, after upgrades too.
///
/// Amounts are gross: the fee of a taker, if it has one, comes off the output. An amount counts as tradable when the curve has the depth and
/// the vault the free liquidity for it; allowances and balances of the caller are not looked at. Amounts of 2^100 and above are never
/// tradable. No function reverts because of a market's state: an unknown, expired or empty market has zeros and no levels.
interface ICurveLens {
    /// @notice A listed pair, `token0` < `token1`.
    struct Pair {
        address token0;
        address token1;
    }

    /// @notice A point of the cumulative price function.
    struct Level {
        uint256 amountIn;
        /// @dev Equal to `quote(tokenIn, tokenOut, amountIn)`.
        uint256 amountOut;
    }

    /// @notice What can be traded in one direction.
    struct Depth {
        /// @dev Sequence number of the newest curve; zero before the first one.
        uint256 curveSeq;
        /// @dev The curve can be traded while block.timestamp < expiry; an expired one has no levels.
        uint256 expiry;
        /// @dev Base units of this side of the curve that are consumed already: taken since its snapshot, and raised when it went live. The
        /// levels start after them.
        uint256 consumed;
        /// @dev The largest tradable input; zero when there is none. A larger one quotes zero and reverts.
        uint256 maxIn;
        /// @dev By strictly rising input, from the best price on, at most 31. Between two of them, and from zero to the first, the price is
        /// constant, so outputs lie on a straight line but for rounding. The input of the last one is `maxIn`.
        Level[] levels;
    }

    /// @notice Every listed pair once, active or not, in the order of listing.
    function getPairs() external view returns (Pair[] memory pairs);

    /// @notice Whether any amount can be traded in this direction now: `maxIn` is not zero.
    function isActive(address tokenIn, address tokenOut) external view returns (bool active);

    /// @notice The price function in this direction, as far as it can be traded.
    function levels(address tokenIn, address tokenOut) external view returns (Depth memory depth);

    /// @notice The largest amount of `tokenIn` that can be sold now, zero for none.
    function maxIn(address tokenIn, address tokenOut) external view returns (uint256 amountIn);

    /// @notice When the newest curve of the pair expires, in seconds of chain time, exclusive; zero for an unknown pair, before the first curve,
    /// and after the owner ended it (`ICurveBook.setSeq`). Later posts replace the curve or prolong it.
    function expiry(address tokenA, address tokenB) external view returns (uint256 timestamp);

    /// @notice Base units of each side of the newest curve that are consumed already. Swaps that landed after the curve's snapshot count, those
    /// on an older curve included, and so does what each side was raised by when the curve went live. Zero for an unknown pair.
    function consumption(address tokenA, address tokenB) external view returns (uint256 askBase, uint256 bidBase);
}
