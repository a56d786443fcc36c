// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Knot, KnotLibrary} from "../types/Knot.sol";
import {SideHead, SideHeadLibrary} from "../types/SideHead.sol";

/// @title The arithmetic of trading against one side of a curve.
/// @notice The only place where curve amounts are computed; swaps, quotes and lenses all call it.
///
/// A walk goes through the segments of a side, best price first: it skips the base units that were consumed before and then takes base units.
/// Its exact cost is the integer G = sum(subticks x base units), and quote units = G x tickLotUnits / (lotUnits x 256), divided once, at the
/// end:
///
/// | mode           | fixed    | computed                                                        |
/// |----------------|----------|-----------------------------------------------------------------|
/// | buy exact-out  | x base   | quote = ceil(G(x))                                              |
/// | buy exact-in   | y quote  | the largest x whose price ceil(G(x)) is at most y; y is taken whole |
/// | sell exact-in  | x base   | quote = floor(G(x))                                             |
/// | sell exact-out | y quote  | the smallest x whose yield floor(G(x)) is at least y; y is paid |
///
/// G is additive along the walk. A sum of ceils is never below the ceil of the sum, and a sum of floors never above the floor of the sum, so a
/// taker gains nothing by trading in parts. Nothing is filled in part: an amount above the depth left, or a buy exact-in above the price of that
/// depth, has the outcome `InsufficientDepth`.
///
/// Widths: subticks < 2^41, a side's depth < 2^92 base units with lotUnits <= 10^18, so G < 2^133; tickLotUnits < 2^113, amounts < 2^100,
/// lotUnits x 256 < 2^68. No product exceeds 2^246, hence the unchecked blocks.
library CurveMath {
    using KnotLibrary for uint256;

    /// @dev Amounts at and above 2^100 are refused.
    uint256 internal constant MAX_AMOUNT = (1 << 100) - 1;
    uint256 internal constant SUBTICKS_PER_TICK = 256;
    /// @dev The available amount that is returned when the depth suffices, so that it is not the reason of a refusal.
    uint256 internal constant ENOUGH = type(uint256).max;
    /// @dev The number 1 in each of the eight lanes of 32 bits that make up a word.
    uint256 private constant LANES = 0x0000000100000001000000010000000100000001000000010000000100000001;

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
        /// @dev What comes in, or what goes out if exactOut. In units of its token.
        uint256 amount;
        /// @dev Base units of the side that are consumed already.
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

    /// @dev Marks that the cost was spent. No real remainder is as large, since costs are below 2^168.
    uint256 private constant MET = type(uint256).max;
    /// @dev A bound above the cost of every segment: lengths are below 2^88 base units, prices below 2^27 quanta.
    uint256 private constant MAX_SEGMENT_COST = (1 << 115) - 1;
    uint256 private constant KNOTS_IN_FIRST_WORD = 7;
    uint256 private constant KNOTS_IN_WORD = 8;

    /// @notice Trades against a side in memory. `words` holds as many words as its first one says, or none.
    function trade(uint256[] memory words, Request memory request) internal pure returns (Trade memory result) {
        (result.baseAmount, result.quoteAmount, result.available) = _walk(words, request);
        result.outcome = outcomeOf(request.amount, result.baseAmount, result.available);
    }

    /// @notice As `trade`, but against a side in storage and in assembly, for less gas; tests compare the two. It reads no word that the walk
    /// does not reach, and at most four words, whatever the first one says. The parameters are the members of `Request`, `skip` for `consumed`.
    /// @return baseAmount Base units; zero if the trade is refused.
    /// @return quoteAmount Quote units; zero if the trade is refused.
    /// @return available If it is refused: the largest amount that would have filled, or `ENOUGH`. See `outcomeOf`.
    function tradeStored(
        uint256[4] storage words,
        bool isBuy,
        bool exactOut,
        uint256 amount,
        uint256 skip,
        uint256 lotUnits,
        uint256 tickLotUnits
    ) internal view returns (uint256 baseAmount, uint256 quoteAmount, uint256 available) {
        if (_isRefused(amount)) return (0, 0, 0);
        // Same as calling _takeBase or _takeCost for each word until it goes through less than all knots, and then _closeBase or _closeCost.
        // Above its 32 bits, `head` counts the knots that the walk has passed, with the head itself as the first one, so that every eighth is
        // the last of its word. The walk ends at a word of zeros: an empty side has one, and one is put after the last word of a side. Some
        // variables have more than one meaning, since variables that do not fit on the stack cost most gas.
        assembly ("memory-safe") {
            let word := sload(words.slot)
            let head := or(shr(224, word), 0x100000000)
            word := shl(32, word)
            let direction := sub(shl(1, isBuy), 1)
            available := not(0)
            switch eq(isBuy, exactOut)
            case 0 {
                let left := div(
                    sub(mul(amount, shl(8, lotUnits)), iszero(isBuy)),
                    shl(and(shr(28, head), 0xf), tickLotUnits)
                )
                for {} 1 {
                    word := shl(32, word)
                    head := add(head, 0x100000000)
                    if iszero(and(head, 0x700000000)) {
                        word := 0
                        let index := shr(35, head)
                        if and(lt(index, and(shr(25, head), 7)), lt(index, 4)) {
                            word := sload(add(words.slot, index))
                        }
                    }
                } {
                    let length := mul(shl(and(shr(240, word), 0xf), shr(244, word)), lotUnits)
                    let price := add(and(head, 0x1ffffff), mul(direction, and(shr(224, word), 0xffff)))
                    let cost := mul(length, price)
                    if gt(sub(cost, 1), MAX_SEGMENT_COST) {
                        break
                    }
                    if skip {
                        if iszero(lt(skip, length)) {
                            skip := sub(skip, length)
                            continue
                        }
                        length := sub(length, skip)
                        cost := mul(length, price)
                        skip := 0
                    }
                    if lt(left, cost) {
                        baseAmount := add(baseAmount, add(div(left, price), iszero(isBuy)))
                        left := not(0)
                        break
                    }
                    left := sub(left, cost)
                    baseAmount := add(baseAmount, length)
                }
                if not(left) {
                    let denominator := shl(8, lotUnits)
                    let numerator := shl(and(shr(28, head), 0xf), tickLotUnits)
                    let spend := div(sub(mul(amount, denominator), iszero(isBuy)), numerator)
                    available := div(
                        add(mul(sub(spend, left), numerator), mul(isBuy, sub(denominator, 1))),
                        denominator
                    )
                    if or(iszero(isBuy), xor(available, amount)) {
                        baseAmount := 0
                    }
                }
                if baseAmount {
                    quoteAmount := amount
                }
            }
            default {
                let left := amount
                for {} 1 {
                    word := shl(32, word)
                    head := add(head, 0x100000000)
                    if iszero(and(head, 0x700000000)) {
                        word := 0
                        let index := shr(35, head)
                        if and(lt(index, and(shr(25, head), 7)), lt(index, 4)) {
                            word := sload(add(words.slot, index))
                        }
                    }
                } {
                    let length := mul(shl(and(shr(240, word), 0xf), shr(244, word)), lotUnits)
                    let price := add(and(head, 0x1ffffff), mul(direction, and(shr(224, word), 0xffff)))
                    let cost := mul(length, price)
                    if gt(sub(cost, 1), MAX_SEGMENT_COST) {
                        break
                    }
                    if skip {
                        if iszero(lt(skip, length)) {
                            skip := sub(skip, length)
                            continue
                        }
                        length := sub(length, skip)
                        cost := mul(length, price)
                        skip := 0
                    }
                    if iszero(lt(length, left)) {
                        quoteAmount := add(quoteAmount, mul(left, price))
                        left := 0
                        break
                    }
                    left := sub(left, length)
                    quoteAmount := add(quoteAmount, cost)
                }
                switch left
                case 0 {
                    let denominator := shl(8, lotUnits)
                    quoteAmount := div(
                        add(
                            mul(quoteAmount, shl(and(shr(28, head), 0xf), tickLotUnits)),
                            mul(isBuy, sub(denominator, 1))
                        ),
                        denominator
                    )
                    if quoteAmount {
                        baseAmount := amount
                    }
                }
                default {
                    quoteAmount := 0
                    available := sub(amount, left)
                }
            }
        }
    }

    /// @notice By how much the consumption of a side is raised when its curve goes live: up to the end of the first segment that ends at
    /// `consumed` or later. Zero if that is one of the first `exactKnots` segments, or if the side ends before. Only lengths are read, not
    /// prices: what comes after a knot that ends the side can't be traded, whatever the consumption is.
    /// @param at Position in memory of the words of the side, as posted.
    /// @param end Position behind the last one.
    /// @param consumed Base units taken since the snapshot; not zero.
    /// @return raised Base units.
    function raisedUnits(
        uint256 at,
        uint256 end,
        uint256 exactKnots,
        uint256 consumed,
        uint256 lotUnits
    ) internal pure returns (uint256 raised) {
        // Same as adding up the lengths of the knots until the sum, times lotUnits, is not below what is consumed, or the side ends; but for
        // eight knots at once, one in each lane of 32 bits, the first one in the highest lane. No lane overflows: a length is below 2^27, so
        // eight of them are below 2^30 together. The last lane of a side holds what is in memory after the side; it is ignored.
        uint256 lots = _lotsUp(consumed, lotUnits);
        assembly ("memory-safe") {
            let exactEnd := add(at, shl(2, exactKnots))
            at := add(at, 4)
            let total := shr(224, mload(at))
            total := shl(and(shr(16, total), 0xf), shr(20, total))
            // Usually what was taken since the snapshot ends in the first segment.
            switch lt(total, lots)
            case 0 {
                raised := mul(sub(mul(total, lotUnits), consumed), and(iszero(exactKnots), lt(at, end)))
            }
            default {
                total := 0
                for {} lt(at, end) {} {
                    let knots := mload(at)
                    at := add(at, 32)
                    // mantissa << exponent, one bit of the exponent after the other: times 1 or 2, times 1 or 4, times 1 or 16, times 1 or 256.
                    let sums := and(shr(20, knots), mul(0xfff, LANES))
                    sums := add(sums, and(sums, mul(0xffffffff, and(shr(16, knots), LANES))))
                    sums := add(sums, mul(3, and(sums, mul(0xffffffff, and(shr(17, knots), LANES)))))
                    sums := add(sums, mul(15, and(sums, mul(0xffffffff, and(shr(18, knots), LANES)))))
                    sums := add(sums, mul(255, and(sums, mul(0xffffffff, and(shr(19, knots), LANES)))))
                    // Each lane and all lower ones together, which are the later segments.
                    sums := mul(sums, LANES)
                    total := add(total, shr(224, sums))
                    if iszero(lt(total, lots)) {
                        // A segment ends at `total` less the lengths of all later ones. The first segment whose end is not below `lots` counts.
                        sums := shl(32, sums)
                        let left := and(shr(31, sub(mul(add(sub(total, lots), 0x80000000), LANES), sums)), LANES)
                        left := shl(2, shr(224, mul(left, LANES)))
                        at := sub(at, left)
                        total := sub(total, and(shr(sub(shl(3, left), 32), sums), 0xffffffff))
                        raised := mul(sub(mul(total, lotUnits), consumed), and(gt(at, exactEnd), lt(at, end)))
                        break
                    }
                }
            }
        }
    }

    /// @dev The least number of lots that hold `units`, both not zero.
    function _lotsUp(uint256 units, uint256 lotUnits) private pure returns (uint256 lots) {
        assembly ("memory-safe") {
            lots := div(add(units, sub(lotUnits, 1)), lotUnits)
        }
    }

    /// @notice Why a trade of `amount` was refused, from what the walk returned; `Filled` if it was not.
    function outcomeOf(uint256 amount, uint256 baseAmount, uint256 available) internal pure returns (Outcome) {
        if (baseAmount != 0) return Outcome.Filled;
        if (amount == 0) return Outcome.ZeroAmount;
        if (amount > MAX_AMOUNT) return Outcome.AmountTooLarge;
        return available == ENOUGH ? Outcome.ZeroOutput : Outcome.InsufficientDepth;
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

    /// @dev As `tradeStored`, with the words in memory.
    function _walk(
        uint256[] memory words,
        Request memory request
    ) private pure returns (uint256 baseAmount, uint256 quoteAmount, uint256 available) {
        uint256 amount = request.amount;
        if (_isRefused(amount)) return (0, 0, 0);
        SideHead head = SideHeadLibrary.headOf(words.length == 0 ? 0 : words[0]);
        uint256 direction = SideHeadLibrary.direction(request.isBuy);
        uint256 numerator = request.tickLotUnits << head.shift();
        bool baseFixed = request.isBuy == request.exactOut;
        uint256 left = baseFixed ? amount : _costOf(direction, amount, numerator, request.lotUnits);
        (uint256 skip, uint256 found, uint256 count) = (request.consumed, 0, 0);
        for (uint256 i = 0; i < head.wordsUsed() && count == 0; ++i) {
            uint256 word = i == 0 ? words[0] << 32 : words[i];
            count = i == 0 ? KNOTS_IN_FIRST_WORD : KNOTS_IN_WORD;
            (left, found, skip, count) = baseFixed
                ? _takeBase(word, count, head, direction, request.lotUnits, skip, left, found)
                : _takeCost(word, count, head, direction, request.lotUnits, skip, left, found);
        }
        return
            baseFixed
                ? _closeBase(direction, amount, numerator, request.lotUnits, left, found)
                : _closeCost(direction, amount, numerator, request.lotUnits, left, found);
    }

    function _isRefused(uint256 amount) private pure returns (bool) {
        unchecked {
            return amount - 1 > MAX_AMOUNT - 1;
        }
    }

    /// @dev Walks the first `count` knots of one word, the first of them in the highest bits, to take `left` base units after `skip`.
    /// @return What is left to take; zero ends the walk.
    /// @return The cost so far.
    /// @return What is left to skip.
    /// @return How many knots were not visited; zero if the word ended before the target was met and before the side ended.
    function _takeBase(
        uint256 word,
        uint256 count,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) private pure returns (uint256, uint256, uint256, uint256) {
        unchecked {
            do {
                uint256 length = word.top().lengthLots() * lotUnits;
                uint256 price = SideHeadLibrary.quantaOf(head.basePrice(), direction, word.top());
                // Zero and negative products are far above any that exists.
                if (length * price - 1 > MAX_SEGMENT_COST) break;
                word <<= 32;
                if (skip >= length) {
                    skip -= length;
                    continue;
                }
                length -= skip;
                skip = 0;
                if (left <= length) {
                    cost += left * price;
                    left = 0;
                    break;
                }
                left -= length;
                cost += length * price;
            } while (--count != 0);
        }
        return (left, cost, skip, count);
    }

    /// @dev As `_takeBase`, but to spend `left` of cost. The walk ends in the segment that costs more than is left: a buyer gets only whole
    /// units that are paid for, a seller gives one unit more, so that the yield is at least what is asked.
    /// @return What is left to spend; `MET` ends the walk.
    /// @return The base units so far.
    /// @return What is left to skip.
    /// @return How many knots were not visited; zero if the word ended before the target was met and before the side ended.
    function _takeCost(
        uint256 word,
        uint256 count,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) private pure returns (uint256, uint256, uint256, uint256) {
        unchecked {
            do {
                uint256 length = word.top().lengthLots() * lotUnits;
                uint256 price = SideHeadLibrary.quantaOf(head.basePrice(), direction, word.top());
                uint256 cost = length * price;
                // Zero and negative products are far above any that exists.
                if (cost - 1 > MAX_SEGMENT_COST) break;
                word <<= 32;
                if (skip != 0) {
                    if (skip >= length) {
                        skip -= length;
                        continue;
                    }
                    length -= skip;
                    cost = length * price;
                    skip = 0;
                }
                if (left < cost) {
                    base += left / price + _isSell(direction);
                    left = MET;
                    break;
                }
                left -= cost;
                base += length;
            } while (--count != 0);
        }
        return (left, base, skip, count);
    }

    /// @dev The cost that a walk of `_takeCost` spends. For a buyer it is what the amount pays for, rounded down; for a seller it is one less
    /// than the least cost that yields the amount.
    function _costOf(
        uint256 direction,
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits
    ) private pure returns (uint256) {
        unchecked {
            return (amount * lotUnits * SUBTICKS_PER_TICK - _isSell(direction)) / numerator;
        }
    }

    /// @dev What a walk of `_takeBase` came to.
    function _closeBase(
        uint256 direction,
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits,
        uint256 left,
        uint256 cost
    ) private pure returns (uint256 baseAmount, uint256 quoteAmount, uint256 available) {
        unchecked {
            available = ENOUGH;
            if (left != 0) {
                available = amount - left;
            } else {
                quoteAmount = _quoteUnits(direction, cost, numerator, lotUnits);
                if (quoteAmount != 0) baseAmount = amount;
            }
        }
    }

    /// @dev What a walk of `_takeCost` came to.
    function _closeCost(
        uint256 direction,
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits,
        uint256 left,
        uint256 base
    ) private pure returns (uint256 baseAmount, uint256 quoteAmount, uint256 available) {
        unchecked {
            available = ENOUGH;
            if (left != MET) {
                uint256 cost = _costOf(direction, amount, numerator, lotUnits) - left;
                available = _quoteUnits(direction, cost, numerator, lotUnits);
                // The walk took the whole side and did not spend all. A buyer who pays exactly the rounded price of the side is filled.
                if (_isSell(direction) != 0 || available != amount) base = 0;
            }
            baseAmount = base;
            if (base != 0) quoteAmount = amount;
        }
    }

    /// @dev Quote units of a cost = cost x numerator / (lotUnits x 256). Costs are in quanta of 2^shift subticks, the step of the side's prices,
    /// and the numerator is tickLotUnits x 2^shift. A buyer pays quote units rounded up, a seller gets them rounded down.
    function _quoteUnits(
        uint256 direction,
        uint256 cost,
        uint256 numerator,
        uint256 lotUnits
    ) private pure returns (uint256) {
        unchecked {
            uint256 denominator = lotUnits * SUBTICKS_PER_TICK;
            uint256 scaled = cost * numerator;
            if (_isSell(direction) == 0) scaled += denominator - 1;
            return scaled / denominator;
        }
    }

    /// @dev 1 for a direction of -1, else 0.
    function _isSell(uint256 direction) private pure returns (uint256) {
        return direction >> 255;
    }
}
