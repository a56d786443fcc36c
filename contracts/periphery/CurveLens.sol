// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../interfaces/ICurveBook.sol";
import {ICurveLens} from "../interfaces/ICurveLens.sol";
import {ICustodian} from "../interfaces/ICustodian.sol";
import {CurveMath} from "../libraries/CurveMath.sol";
import {MarketIds} from "../libraries/MarketIds.sol";
import {Knot, KnotLibrary} from "../types/Knot.sol";
import {SideHead, SideHeadLibrary} from "../types/SideHead.sol";

/// @title CurveLens
/// @notice The documentation is in {ICurveLens}.
///
/// It computes only where segments end. Every amount comes from `ICurveBook.preview`, which uses the same arithmetic as swaps.
contract CurveLens is ICurveLens {
    using KnotLibrary for uint256;

    /// @dev Width of the volumes that a snapshot reflects.
    uint256 private constant MASK_92 = (1 << 92) - 1;

    ICurveBook private immutable CURVE_BOOK;
    ICustodian private immutable CUSTODIAN;

    constructor(address curveBook, address custodian) {
        CURVE_BOOK = ICurveBook(curveBook);
        CUSTODIAN = ICustodian(custodian);
    }

    /// @inheritdoc ICurveLens
    function getPairs() external view returns (Pair[] memory pairs) {
        uint256 count = CURVE_BOOK.marketCount();
        pairs = new Pair[](count);
        for (uint256 i = 0; i < count; ++i) {
            ICurveBook.MarketState memory m = CURVE_BOOK.marketState(CURVE_BOOK.marketAt(i));
            pairs[i] = m.base < m.quote ? Pair(m.base, m.quote) : Pair(m.quote, m.base);
        }
    }

    /// @inheritdoc ICurveLens
    function isActive(address tokenIn, address tokenOut) external view returns (bool active) {
        return maxIn(tokenIn, tokenOut) != 0;
    }

    /// @inheritdoc ICurveLens
    function maxIn(address tokenIn, address tokenOut) public view returns (uint256 amountIn) {
        ICurveBook.MarketState memory m = _market(tokenIn, tokenOut);
        uint256[] memory ends = _segmentEnds(m, tokenIn == m.quote);
        return _maxIn(tokenIn, tokenOut, tokenIn == m.quote, ends);
    }

    /// @inheritdoc ICurveLens
    function levels(address tokenIn, address tokenOut) external view returns (Depth memory depth) {
        ICurveBook.MarketState memory m = _market(tokenIn, tokenOut);
        bool isBuy = tokenIn == m.quote;
        (depth.curveSeq, depth.expiry, depth.consumed) = (m.seq, m.deadline, _consumed(m, isBuy));
        uint256[] memory ends = _segmentEnds(m, isBuy);
        uint256 most = _maxIn(tokenIn, tokenOut, isBuy, ends);
        depth.maxIn = most;
        if (most == 0) return depth;

        Level[] memory found = new Level[](ends.length + 1);
        uint256 count = 0;
        uint256 reached = 0;
        for (uint256 i = 0; i < ends.length; ++i) {
            uint256 amountIn = ends[i];
            if (isBuy) (amountIn, ) = CURVE_BOOK.preview(tokenIn, tokenOut, ends[i], true);
            if (amountIn >= most) break;
            (, uint256 amountOut) = CURVE_BOOK.preview(tokenIn, tokenOut, amountIn, false);
            // Left out: an input too small to be traded, and a segment whose end rounds to the same input as the one before.
            if (amountOut == 0 || amountIn <= reached) continue;
            found[count++] = Level(amountIn, amountOut);
            reached = amountIn;
        }
        (, uint256 mostOut) = CURVE_BOOK.preview(tokenIn, tokenOut, most, false);
        found[count++] = Level(most, mostOut);
        depth.levels = new Level[](count);
        for (uint256 i = 0; i < count; ++i) {
            depth.levels[i] = found[i];
        }
    }

    /// @inheritdoc ICurveLens
    function expiry(address tokenA, address tokenB) external view returns (uint256 timestamp) {
        return _market(tokenA, tokenB).deadline;
    }

    /// @inheritdoc ICurveLens
    function consumption(address tokenA, address tokenB) external view returns (uint256 askBase, uint256 bidBase) {
        ICurveBook.MarketState memory m = _market(tokenA, tokenB);
        return (_consumed(m, true), _consumed(m, false));
    }

    /* INTERNAL */

    /// @dev All zeros for a pair that is not listed.
    function _market(address tokenA, address tokenB) private view returns (ICurveBook.MarketState memory m) {
        try CURVE_BOOK.marketState(MarketIds.idOf(tokenA, tokenB)) returns (ICurveBook.MarketState memory state) {
            return state;
        } catch {
            return m;
        }
    }

    /// @dev Modulo 2^92, as the swap counts.
    function _consumed(ICurveBook.MarketState memory m, bool ask) private pure returns (uint256) {
        unchecked {
            return (ask ? m.cumAsk - m.snapAsk : m.cumBid - m.snapBid) & MASK_92;
        }
    }

    /// @dev For each segment that is not wholly consumed, best price first: the base units from the first one that can be taken to the segment's
    /// end. Empty when the curve has expired.
    function _segmentEnds(ICurveBook.MarketState memory m, bool ask) private view returns (uint256[] memory ends) {
        if (block.timestamp >= m.deadline) return ends;
        (uint256[] memory asks, uint256[] memory bids) = CURVE_BOOK.curveWords(MarketIds.idOf(m.base, m.quote));
        uint256[] memory words = ask ? asks : bids;
        if (words.length == 0) return ends;

        uint256 consumed = _consumed(m, ask);
        SideHead head = SideHeadLibrary.headOf(words[0]);
        uint256[] memory found = new uint256[](8 * words.length - 1);
        uint256 count = 0;
        uint256 end = 0;
        for (uint256 i = 0; i < found.length; ++i) {
            // The head takes the place of the first knot of the first word.
            Knot knot = (words[(i + 1) / 8] << (32 * ((i + 1) % 8))).top();
            if (knot.mantissa() == 0 || head.priceOf(knot, ask) == 0) break;
            end += knot.lengthLots() * m.lotUnits;
            if (end > consumed) found[count++] = end - consumed;
        }
        ends = new uint256[](count);
        for (uint256 i = 0; i < count; ++i) {
            ends[i] = found[i];
        }
    }

    /// @dev The largest input that the curve and the vault can fill. Output never falls when input rises, so if the vault is the limit, it is
    /// one unit less than the input for the vault's free liquidity plus one unit. If that output is too large to ask for, bisection finds the
    /// input.
    function _maxIn(
        address tokenIn,
        address tokenOut,
        bool isBuy,
        uint256[] memory ends
    ) private view returns (uint256 amountIn) {
        if (ends.length == 0) return 0;
        amountIn = ends[ends.length - 1];
        if (isBuy) (amountIn, ) = CURVE_BOOK.preview(tokenIn, tokenOut, amountIn, true);
        if (amountIn > CurveMath.MAX_AMOUNT) amountIn = CurveMath.MAX_AMOUNT;
        (, uint256 amountOut) = CURVE_BOOK.preview(tokenIn, tokenOut, amountIn, false);
        uint256 means = CUSTODIAN.availableLiquidity(tokenOut);
        if (amountOut > means) {
            uint256 beyond;
            if (means < CurveMath.MAX_AMOUNT) (beyond, ) = CURVE_BOOK.preview(tokenIn, tokenOut, means + 1, true);
            else beyond = _firstBeyond(tokenIn, tokenOut, amountIn, means);
            amountIn = beyond - 1;
            (, amountOut) = CURVE_BOOK.preview(tokenIn, tokenOut, amountIn, false);
        }
        if (amountOut == 0) return 0;
    }

    /// @param enough An input whose output is above `means`.
    /// @return beyond The smallest such input.
    function _firstBeyond(
        address tokenIn,
        address tokenOut,
        uint256 enough,
        uint256 means
    ) private view returns (uint256 beyond) {
        uint256 below = 0;
        beyond = enough;
        while (beyond - below > 1) {
            uint256 middle = (below + beyond) / 2;
            (, uint256 amountOut) = CURVE_BOOK.preview(tokenIn, tokenOut, middle, false);
            if (amountOut > means) beyond = middle;
            else below = middle;
        }
    }
}
