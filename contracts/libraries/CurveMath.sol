// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Knot, KnotLibrary} from "../types/Knot.sol";
import {SideHead, SideHeadLibrary} from "../types/SideHead.sol";

/// @title The arithmetic of trading against one side of a curve.
/// @notice The only place where curve amounts are computed; swaps, quotes and lenses all call it.
///
/// A walk skips what was consumed before and then takes base units from the best segment on. Its exact cost is the integer
/// G = sum(subticks x base units), and quote units = G x tickLotUnits / (lotUnits x 256), divided once, at the end:
///
/// | mode           | fixed    | computed                                                        |
/// |----------------|----------|-----------------------------------------------------------------|
/// | buy exact-out  | x base   | quote = ceil(G(x))                                              |
/// | buy exact-in   | y quote  | the largest x whose price ceil(G(x)) is at most y; y is taken whole |
/// | sell exact-in  | x base   | quote = floor(G(x))                                             |
/// | sell exact-out | y quote  | the smallest x whose yield floor(G(x)) is at least y; y is paid |
///
/// G is additive along the walk, so a sum of ceils is never below the ceil of the sum, and the other way round for floors: trading in parts
/// never beats trading at once. Nothing is filled in part: beyond the depth left, and above its whole price on a buy exact-in, the outcome
/// is `InsufficientDepth`.
///
/// Widths: subticks < 2^41, a side's depth < 2^92 base units with lotUnits <= 10^18, so G < 2^133; tickLotUnits < 2^113, amounts < 2^100,
/// lotUnits x 256 < 2^68. No product exceeds 2^246, hence the unchecked blocks.
library CurveMath {
    using KnotLibrary for uint256;

    /// @dev Amounts at and above 2^100 are refused.
    uint256 internal constant MAX_AMOUNT = (1 << 100) - 1;
    uint256 internal constant SUBTICKS_PER_TICK = 256;

    enum Outcome {
        Filled,
        ZeroAmount,
        AmountTooLarge,
        InsufficientDepth,
        ZeroOutput
    }

    struct Request {
        /// @dev True when the taker buys base from the ask side.
        bool isBuy;
        bool exactOut;
        /// @dev What comes in, or what goes out if exactOut.
        uint256 amount;
        /// @dev Base units of the side that are taken already.
        uint256 consumed;
        uint256 lotUnits;
        uint256 tickLotUnits;
    }

    struct Trade {
        Outcome outcome;
        /// @dev Both zero unless the outcome is `Filled`.
        uint256 baseAmount;
        uint256 quoteAmount;
        /// @dev With `InsufficientDepth`: the largest amount that would have filled.
        uint256 available;
    }

    /// @dev What `left` counts, and what `found` counts.
    enum Goal {
        /// left: base units; found: G.
        Base,
        /// left: G that may be spent; found: base units.
        CostAtMost,
        /// left: G that must be reached; found: base units.
        CostAtLeast
    }

    struct Walk {
        SideHead head;
        bool ask;
        Goal goal;
        uint256 lotUnits;
        /// @dev What `left` was at the start.
        uint256 target;
        /// @dev Base units still to be skipped.
        uint256 skip;
        uint256 left;
        uint256 found;
        /// @dev The goal is met, or the side has no more knots. In the first case left is zero.
        bool ended;
    }

    /// @notice Trades against a side in memory. `words` holds as many words as its first one says, or none.
    function trade(uint256[] memory words, Request memory request) internal pure returns (Trade memory) {
        if (words.length == 0) return _close(request, _open(0, request));
        Walk memory walk = _open(words[0], request);
        uint256 used = walk.head.wordsUsed();
        if (used != 0) _visit(walk, words[0] << 32, 7);
        for (uint256 i = 1; i < used && !walk.ended; ++i) {
            _visit(walk, words[i], 8);
        }
        return _close(request, walk);
    }

    /// @notice Trades against a side in storage, reading no word that the walk does not reach.
    function tradeStored(uint256[4] storage words, Request memory request) internal view returns (Trade memory) {
        uint256 word = words[0];
        Walk memory walk = _open(word, request);
        uint256 used = Math.min(walk.head.wordsUsed(), 4);
        if (used != 0) _visit(walk, word << 32, 7);
        for (uint256 i = 1; i < used && !walk.ended; ++i) {
            _visit(walk, words[i], 8);
        }
        return _close(request, walk);
    }

    /// @notice The lowest ask or the highest bid of a side, whatever the order of its knots; zero without depth.
    function bestSubticks(uint256[] memory words, bool ask) internal pure returns (uint256 best) {
        if (words.length == 0) return 0;
        SideHead head = SideHeadLibrary.headOf(words[0]);
        for (uint256 i = 0; i < words.length; ++i) {
            uint256 word = i == 0 ? words[0] << 32 : words[i];
            for (uint256 k = i == 0 ? 1 : 0; k < 8; ++k) {
                Knot knot = word.top();
                uint256 price = head.priceOf(knot, ask);
                if (knot.mantissa() == 0 || price == 0) return best;
                if (best == 0 || (ask ? price < best : price > best)) best = price;
                word <<= 32;
            }
        }
    }

    /// @dev Rounding: what may be spent is rounded down, what must be reached is rounded up.
    function _open(uint256 firstWord, Request memory request) private pure returns (Walk memory walk) {
        walk.head = SideHeadLibrary.headOf(firstWord);
        walk.ask = request.isBuy;
        walk.lotUnits = request.lotUnits;
        walk.skip = request.consumed;
        uint256 amount = request.amount;
        if (amount > MAX_AMOUNT) {
            walk.ended = true;
        } else if (request.isBuy == request.exactOut) {
            walk.left = amount;
        } else {
            unchecked {
                uint256 scaled = amount * (request.lotUnits * SUBTICKS_PER_TICK);
                walk.goal = request.isBuy ? Goal.CostAtMost : Goal.CostAtLeast;
                walk.left =
                    request.isBuy ? scaled / request.tickLotUnits : Math.ceilDiv(scaled, request.tickLotUnits);
            }
        }
        walk.target = walk.left;
    }

    /// @dev Walks the first `count` knots of one word, the first of them in the highest bits.
    function _visit(Walk memory walk, uint256 word, uint256 count) private pure {
        SideHead head = walk.head;
        bool ask = walk.ask;
        Goal goal = walk.goal;
        uint256 lotUnits = walk.lotUnits;
        uint256 skip = walk.skip;
        uint256 left = walk.left;
        uint256 found = walk.found;
        bool ended = false;
        unchecked {
            for (uint256 k = 0; k < count; ++k) {
                Knot knot = word.top();
                word <<= 32;
                uint256 length = knot.lengthLots() * lotUnits;
                uint256 price = head.priceOf(knot, ask);
                if (length == 0 || price == 0) {
                    ended = true;
                    break;
                }
                if (skip >= length) {
                    skip -= length;
                    continue;
                }
                length -= skip;
                skip = 0;
                (left, found, ended) = _take(goal, length, price, left, found);
                if (ended) break;
            }
        }
        walk.skip = skip;
        walk.left = left;
        walk.found = found;
        walk.ended = ended;
    }

    /// @dev Takes from one segment what the goal needs.
    function _take(Goal goal, uint256 length, uint256 price, uint256 left, uint256 found)
        private
        pure
        returns (uint256, uint256, bool ended)
    {
        unchecked {
            if (goal == Goal.Base) {
                if (length < left) return (left - length, found + length * price, false);
                return (0, found + left * price, true);
            }
            uint256 cost = length * price;
            if (cost < left) return (left - cost, found + length, false);
            if (goal == Goal.CostAtMost) return (0, found + left / price, true);
            return (0, found + Math.ceilDiv(left, price), true);
        }
    }

    function _close(Request memory request, Walk memory walk) private pure returns (Trade memory result) {
        result.outcome = _outcome(request, walk, result);
        if (result.outcome != Outcome.Filled) (result.baseAmount, result.quoteAmount) = (0, 0);
    }

    /// @dev Writes amounts and what is available into `result`, then judges them.
    function _outcome(Request memory request, Walk memory walk, Trade memory result) private pure returns (Outcome) {
        uint256 amount = request.amount;
        if (amount == 0) return Outcome.ZeroAmount;
        if (amount > MAX_AMOUNT) return Outcome.AmountTooLarge;
        uint256 left = walk.left;
        unchecked {
            if (walk.goal == Goal.Base) {
                result.available = amount - left;
                if (left != 0) return Outcome.InsufficientDepth;
                result.baseAmount = amount;
                result.quoteAmount = _quoteUnits(request, walk.found, request.isBuy);
            } else {
                result.baseAmount = walk.found;
                result.quoteAmount = amount;
                if (left != 0) {
                    // The whole side costs less than what may be spent. The difference may be mere rounding of the last unit.
                    result.available = _quoteUnits(request, walk.target - left, request.isBuy);
                    if (!request.isBuy || result.available != amount) return Outcome.InsufficientDepth;
                }
            }
        }
        bool isEmpty = request.isBuy ? result.baseAmount == 0 : result.quoteAmount == 0;
        return isEmpty ? Outcome.ZeroOutput : Outcome.Filled;
    }

    function _quoteUnits(Request memory request, uint256 cost, bool roundUp) private pure returns (uint256) {
        unchecked {
            uint256 scaled = cost * request.tickLotUnits;
            uint256 divisor = request.lotUnits * SUBTICKS_PER_TICK;
            return roundUp ? Math.ceilDiv(scaled, divisor) : scaled / divisor;
        }
    }
}
