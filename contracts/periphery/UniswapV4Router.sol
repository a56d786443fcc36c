// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IPoolManager, PoolKey, SwapParams} from "../interfaces/IPoolManager.sol";
import {IUniswapV4Router} from "../interfaces/IUniswapV4Router.sol";

/// @title UniswapV4Router
/// @notice The documentation is in {IUniswapV4Router}.
///
/// Who pays is always the caller of the swap that is under way. The manager calls back whoever unlocks it, with the data that it got from it,
/// so data in the callback is this contract's own. It is unlocked once at a time, so a token that calls back here during a payment is refused.
contract UniswapV4Router is IUniswapV4Router {
    using SafeERC20 for IERC20;

    /// @dev One swap, as the callback gets it.
    struct Trade {
        PoolKey key;
        bool zeroForOne;
        bool isQuote;
        /// Who pays and receives.
        address trader;
        /// As the manager takes it: negative for an exact input.
        int256 amountSpecified;
        /// The least output of an exact input, the most input of an exact output.
        uint256 limit;
    }

    /// @dev The last prices that a swap may have as a limit: none, so that it only stops before where no liquidity is left.
    uint160 private constant LOWEST_SQRT_PRICE = 4295128740;
    uint160 private constant HIGHEST_SQRT_PRICE = 1461446703485210103287273052203988822378723970341;
    /// @dev The manager counts what a swap changes in 128 bits with a sign.
    uint256 private constant MOST_AMOUNT = uint128(type(int128).max);
    /// @dev Where the manager keeps its pools by their ids; the first word of each ends with the price.
    uint256 private constant POOLS_SLOT = 6;

    IPoolManager private immutable MANAGER;

    constructor(address manager) {
        MANAGER = IPoolManager(manager);
    }

    /* SWAPS */

    /// @inheritdoc IUniswapV4Router
    function swapExactIn(
        PoolKey calldata key,
        bool zeroForOne,
        uint256 amountIn,
        uint256 minAmountOut
    ) external returns (uint256 amountOut) {
        (, amountOut) = _swap(key, zeroForOne, -_signed(amountIn), minAmountOut);
    }

    /// @inheritdoc IUniswapV4Router
    function swapExactOut(
        PoolKey calldata key,
        bool zeroForOne,
        uint256 amountOut,
        uint256 maxAmountIn
    ) external returns (uint256 amountIn) {
        (amountIn, ) = _swap(key, zeroForOne, _signed(amountOut), maxAmountIn);
    }

    /* QUOTES */

    /// @inheritdoc IUniswapV4Router
    function quoteExactIn(
        PoolKey calldata key,
        bool zeroForOne,
        uint256 amountIn
    ) external returns (uint256 amountOut) {
        (, amountOut) = _quote(key, zeroForOne, -_signed(amountIn), 0);
    }

    /// @inheritdoc IUniswapV4Router
    function quoteExactOut(
        PoolKey calldata key,
        bool zeroForOne,
        uint256 amountOut
    ) external returns (uint256 amountIn) {
        (amountIn, ) = _quote(key, zeroForOne, _signed(amountOut), type(uint256).max);
    }

    /* CALLBACK */

    /// @inheritdoc IUniswapV4Router
    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        if (msg.sender != address(MANAGER)) revert NotPoolManager(msg.sender);
        Trade memory trade = abi.decode(data, (Trade));
        (uint256 amountIn, uint256 amountOut) = _trade(trade);
        if (trade.isQuote) revert Quoted(amountIn, amountOut);

        (address paid, address received) = trade.zeroForOne
            ? (trade.key.currency0, trade.key.currency1)
            : (trade.key.currency1, trade.key.currency0);
        // A token that keeps a part of the payment leaves something owed, and the manager reverts.
        MANAGER.sync(paid);
        IERC20(paid).safeTransferFrom(trade.trader, address(MANAGER), amountIn);
        MANAGER.settle();
        MANAGER.take(received, trade.trader, amountOut);
        return abi.encode(amountIn, amountOut);
    }

    /* VIEWS */

    /// @inheritdoc IUniswapV4Router
    function sqrtPriceOf(PoolKey calldata key) external view returns (uint160 sqrtPriceX96) {
        bytes32 slot = keccak256(abi.encode(keccak256(abi.encode(key)), POOLS_SLOT));
        return uint160(uint256(MANAGER.extsload(slot)));
    }

    /// @inheritdoc IUniswapV4Router
    function poolManager() external view returns (address) {
        return address(MANAGER);
    }

    /* INTERNAL */

    function _swap(
        PoolKey calldata key,
        bool zeroForOne,
        int256 amountSpecified,
        uint256 limit
    ) private returns (uint256 amountIn, uint256 amountOut) {
        _requireSupported(key);
        bytes memory answer = MANAGER.unlock(
            abi.encode(Trade(key, zeroForOne, false, msg.sender, amountSpecified, limit))
        );
        return abi.decode(answer, (uint256, uint256));
    }

    /// @dev As `_swap`, up to the payment. The callback reverts with what it found, which undoes the swap; any other reason is passed on.
    function _quote(
        PoolKey calldata key,
        bool zeroForOne,
        int256 amountSpecified,
        uint256 limit
    ) private returns (uint256 amountIn, uint256 amountOut) {
        _requireSupported(key);
        try MANAGER.unlock(abi.encode(Trade(key, zeroForOne, true, msg.sender, amountSpecified, limit))) {
            assert(false);
        } catch (bytes memory reason) {
            bool isQuote = reason.length == 0x44 && bytes4(reason) == Quoted.selector;
            // Same as (amountIn, amountOut) = abi.decode(reason[4:], (uint256, uint256)) if it is a quote, else revert with the reason.
            assembly ("memory-safe") {
                if iszero(isQuote) {
                    revert(add(reason, 0x20), mload(reason))
                }
                amountIn := mload(add(reason, 0x24))
                amountOut := mload(add(reason, 0x44))
            }
        }
    }

    /// @dev Trades in the pool, pays nothing yet. Reverts `PartialSwap`, `InsufficientOutput`, `ExcessiveInput`.
    function _trade(Trade memory trade) private returns (uint256 amountIn, uint256 amountOut) {
        (bool zeroForOne, int256 amountSpecified, uint256 limit) = (
            trade.zeroForOne,
            trade.amountSpecified,
            trade.limit
        );
        uint160 lastPrice = zeroForOne ? LOWEST_SQRT_PRICE : HIGHEST_SQRT_PRICE;
        int256 delta = MANAGER.swap(trade.key, SwapParams(zeroForOne, amountSpecified, lastPrice), "");
        (int256 change0, int256 change1) = (delta >> 128, int128(delta));
        (int256 owed, int256 due) = zeroForOne ? (-change0, change1) : (-change1, change0);
        // Without hooks a pool takes the one token and gives the other; both fit 128 bits.
        (amountIn, amountOut) = (uint256(owed), uint256(due));

        bool isExactIn = amountSpecified < 0;
        (uint256 exact, uint256 traded) = isExactIn
            ? (uint256(-amountSpecified), amountIn)
            : (uint256(amountSpecified), amountOut);
        if (traded != exact) revert PartialSwap(traded, exact);
        if (isExactIn && amountOut < limit) revert InsufficientOutput(amountOut, limit);
        if (!isExactIn && amountIn > limit) revert ExcessiveInput(amountIn, limit);
    }

    function _requireSupported(PoolKey calldata key) private pure {
        if (key.hooks != address(0) || key.currency0 == address(0)) revert UnsupportedPool(key.currency0, key.hooks);
    }

    function _signed(uint256 amount) private pure returns (int256) {
        if (amount == 0 || amount > MOST_AMOUNT) revert AmountOutOfRange(amount);
        return int256(amount);
    }
}
