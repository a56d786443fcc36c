// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

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

    /// @dev A walk under way. Costs are kept in quanta of 2^shift subticks, the step of the side's prices; the numerator makes up for it.
    struct Walk {
        /// @dev Quote units of a cost = cost x numerator / denominator.
        uint256 numerator;
        uint256 denominator;
        uint256 lotUnits;
        uint256 basePrice;
        /// @dev +1 on asks, -1 on bids, as a two's complement.
        uint256 direction;
        /// @dev Where to stop: base units if the base is fixed, else cost.
        uint256 target;
        bool baseFixed;
        /// @dev Base units still to be skipped.
        uint256 skip;
        /// @dev Base units taken, and their cost.
        uint256 base;
        uint256 cost;
        bool targetMet;
    }

    /// @notice Trades against a side in memory. `words` holds as many words as its first one says, or none.
    function trade(uint256[] memory words, Request memory request) internal pure returns (Trade memory result) {
        if (!_checkAmount(request.amount, result)) return result;
        uint256 word = words.length == 0 ? 0 : words[0];
        SideHead head = SideHeadLibrary.headOf(word);
        Walk memory walk = _open(head, request);
        uint256 used = head.wordsUsed();
        bool more = used != 0 && _visit(walk, word << 32, 7);
        for (uint256 i = 1; more && i < used; ++i) {
            more = _visit(walk, words[i], 8);
        }
        _close(request, walk, result);
    }

    /// @notice Trades against a side in storage, reading no word that the walk does not reach. A first word that counts more than four
    /// words, which no post can write, makes it revert.
    function tradeStored(uint256[4] storage words, Request memory request) internal view returns (Trade memory result) {
        if (!_checkAmount(request.amount, result)) return result;
        uint256 word = words[0];
        SideHead head = SideHeadLibrary.headOf(word);
        Walk memory walk = _open(head, request);
        uint256 used = head.wordsUsed();
        bool more = used != 0 && _visit(walk, word << 32, 7);
        for (uint256 i = 1; more && i < used; ++i) {
            more = _visit(walk, words[i], 8);
        }
        _close(request, walk, result);
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

    function _checkAmount(uint256 amount, Trade memory result) private pure returns (bool ok) {
        if (amount == 0) result.outcome = Outcome.ZeroAmount;
        else if (amount > MAX_AMOUNT) result.outcome = Outcome.AmountTooLarge;
        else return true;
    }

    /// @dev Rounding: what may be spent is rounded down, what must be reached is rounded up.
    function _open(SideHead head, Request memory request) private pure returns (Walk memory walk) {
        bool isBuy = request.isBuy;
        uint256 amount = request.amount;
        uint256 lotUnits = request.lotUnits;
        unchecked {
            uint256 numerator = request.tickLotUnits << head.shift();
            uint256 denominator = lotUnits * SUBTICKS_PER_TICK;
            walk.numerator = numerator;
            walk.denominator = denominator;
            if (isBuy == request.exactOut) {
                walk.baseFixed = true;
                walk.target = amount;
            } else {
                uint256 scaled = amount * denominator;
                walk.target = isBuy ? scaled / numerator : (scaled + numerator - 1) / numerator;
            }
        }
        walk.lotUnits = lotUnits;
        walk.basePrice = head.basePrice();
        walk.direction = SideHeadLibrary.direction(isBuy);
        walk.skip = request.consumed;
    }

    /// @dev Walks the first `count` knots of one word, the first of them in the highest bits.
    /// @return more True if neither the target was met nor the side ended.
    function _visit(Walk memory walk, uint256 word, uint256 count) private pure returns (bool more) {
        uint256 basePrice = walk.basePrice;
        uint256 direction = walk.direction;
        uint256 lotUnits = walk.lotUnits;
        uint256 skip = walk.skip;
        uint256 base = walk.base;
        uint256 cost = walk.cost;
        unchecked {
            do {
                Knot knot = word.top();
                uint256 length = knot.lengthLots() * lotUnits;
                uint256 price = SideHeadLibrary.quantaOf(basePrice, direction, knot);
                if (length == 0 || !SideHeadLibrary.isPositive(price)) break;
                if (skip < length) {
                    length -= skip;
                    skip = 0;
                    base += length;
                    cost += length * price;
                    if ((walk.baseFixed ? base : cost) >= walk.target) {
                        _stop(walk, base, cost, price);
                        return false;
                    }
                } else {
                    skip -= length;
                }
                word <<= 32;
                --count;
            } while (count != 0);
        }
        walk.skip = skip;
        walk.base = base;
        walk.cost = cost;
        return count == 0;
    }

    /// @dev The target lies in the segment just taken whole: gives back what goes beyond. A buyer gets no more base than was paid for, a seller
    /// gives up enough for what is asked.
    function _stop(Walk memory walk, uint256 base, uint256 cost, uint256 price) private pure {
        unchecked {
            uint256 beyond;
            if (walk.baseFixed) beyond = base - walk.target;
            else if (walk.direction == 1) beyond = (cost - walk.target + price - 1) / price;
            else beyond = (cost - walk.target) / price;
            walk.base = base - beyond;
            walk.cost = cost - beyond * price;
            walk.targetMet = true;
        }
    }

    /// @dev Judges a finished walk.
    function _close(Request memory request, Walk memory walk, Trade memory result) private pure {
        bool isBuy = request.isBuy;
        uint256 amount = request.amount;
        uint256 baseAmount = walk.base;
        uint256 quoteAmount = amount;
        if (walk.baseFixed) {
            if (!walk.targetMet) {
                result.outcome = Outcome.InsufficientDepth;
                result.available = baseAmount;
                return;
            }
            quoteAmount = _quoteUnits(walk, isBuy);
        } else if (!walk.targetMet) {
            // The whole side costs less than what may be spent. The difference may be mere rounding of the last unit.
            result.available = _quoteUnits(walk, isBuy);
            if (!isBuy || result.available != amount) {
                result.outcome = Outcome.InsufficientDepth;
                return;
            }
        }
        if (baseAmount == 0 || quoteAmount == 0) {
            result.outcome = Outcome.ZeroOutput;
            return;
        }
        result.baseAmount = baseAmount;
        result.quoteAmount = quoteAmount;
    }

    /// @dev A buyer pays quote units rounded up, a seller gets them rounded down.
    function _quoteUnits(Walk memory walk, bool isBuy) private pure returns (uint256) {
        unchecked {
            uint256 scaled = walk.cost * walk.numerator;
            return (isBuy ? scaled + walk.denominator - 1 : scaled) / walk.denominator;
        }
    }
}
