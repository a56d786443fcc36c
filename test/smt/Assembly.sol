// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CurveMath} from "../../contracts/libraries/CurveMath.sol";
import {SideHead} from "../../contracts/types/SideHead.sol";
import {Segments} from "./Segments.sol";

/// @notice That the assembly of `CurveMath.tradeStored`, which swaps execute, begins, goes on and ends as the functions do of which the other
/// claims speak, or as those claims say. Of its steps, see StoredBaseWalk.sol and StoredCostWalk.sol. It is translated by
/// scripts/smt/assembly.mjs: Head<i>, Step<i>, Next<i> and Tail<i> are what it does before loop i, in one turn of it, between two, and after
/// it. Loop 0 spends a cost, loop 1 takes base units.
contract Assembly {
    /// @dev Storage: anything.
    mapping(uint256 slot => uint256 word) private _stored;

    function _given(
        uint256 head,
        uint256 lotUnits,
        uint256 tickLotUnits
    ) private pure returns (SideHead side, uint256 numerator) {
        require(head < 2 ** 38);
        require(lotUnits > 0);
        require(lotUnits <= 10 ** 18);
        require(tickLotUnits > 0);
        require(tickLotUnits < 2 ** 113);
        side = SideHead.wrap(head & 0xffffffff);
        numerator = tickLotUnits << side.shift();
    }

    function buyerSpendsTheSame(uint256 amount, uint256 lotUnits, uint256 head, uint256 tickLotUnits) external pure {
        (, uint256 numerator) = _given(head, lotUnits, tickLotUnits);
        require(amount <= CurveMath.MAX_AMOUNT);
        require(numerator > 0);
        assert(
            CurveMath.tradeStoredHead0(amount, lotUnits, true, head, tickLotUnits) ==
                CurveMath._costOf(Segments.ASK, amount, numerator, lotUnits)
        );
    }

    function sellerSpendsTheSame(uint256 amount, uint256 lotUnits, uint256 head, uint256 tickLotUnits) external pure {
        (, uint256 numerator) = _given(head, lotUnits, tickLotUnits);
        require(amount > 0);
        require(amount <= CurveMath.MAX_AMOUNT);
        require(numerator > 0);
        assert(
            CurveMath.tradeStoredHead0(amount, lotUnits, false, head, tickLotUnits) ==
                CurveMath._costOf(Segments.BID, amount, numerator, lotUnits)
        );
    }

    /// @dev Between two knots of a word the next one moves up.
    function nextKnotIsOfTheWord(uint256 word, uint256 head, uint256 slot) external view {
        require(head < 2 ** 38);
        require((head / 2 ** 32) % 8 != 7);
        (uint256 next, uint256 counted) = CurveMath.tradeStoredNext0(word, head, slot, _stored);
        assert(next == (word % 2 ** 224) * 2 ** 32);
        assert(counted == head + 2 ** 32);
    }

    /// @dev After the eighth comes the next word of the side, if the side uses it.
    function nextWordIsOfTheSide(uint256 word, uint256 head, uint256 slot) external view {
        require(head < 2 ** 38 - 2 ** 32);
        require((head / 2 ** 32) % 8 == 7);
        require(slot < 2 ** 255);
        uint256 index = head / 2 ** 35 + 1;
        require(index < 4);
        require(index < SideHead.wrap(head % 2 ** 32).wordsUsed());
        (uint256 next, ) = CurveMath.tradeStoredNext0(word, head, slot, _stored);
        assert(next == _stored[slot + index]);
    }

    /// @dev Behind the words that the side uses there is nothing, whatever is stored there.
    function behindTheSideIsNothing(uint256 word, uint256 head, uint256 slot) external view {
        require(head < 2 ** 38 - 2 ** 32);
        require((head / 2 ** 32) % 8 == 7);
        require(head / 2 ** 35 + 1 >= SideHead.wrap(head % 2 ** 32).wordsUsed());
        (uint256 next, ) = CurveMath.tradeStoredNext0(word, head, slot, _stored);
        assert(next == 0);
    }

    /// @dev And never more than four.
    function behindFourWordsIsNothing(uint256 word, uint256 head, uint256 slot) external view {
        require(head < 2 ** 38 - 2 ** 32);
        require((head / 2 ** 32) % 8 == 7);
        require(head / 2 ** 35 >= 3);
        (uint256 next, ) = CurveMath.tradeStoredNext0(word, head, slot, _stored);
        assert(next == 0);
    }

    /// @dev Both loops go on alike.
    function bothLoopsGoOnAlike(uint256 word, uint256 head, uint256 slot) external view {
        require(head < 2 ** 38);
        (uint256 a, uint256 b) = CurveMath.tradeStoredNext0(word, head, slot, _stored);
        (uint256 c, uint256 d) = CurveMath.tradeStoredNext1(word, head, slot, _stored);
        assert(a == c);
        assert(b == d);
    }

    function buyerPaysTheSame(
        uint256 amount,
        uint256 head,
        uint256 lotUnits,
        uint256 tickLotUnits,
        uint256 left,
        uint256 cost
    ) external pure {
        (, uint256 numerator) = _given(head, lotUnits, tickLotUnits);
        require(amount <= CurveMath.MAX_AMOUNT);
        require(cost < 2 ** 120);
        require(numerator < 2 ** 128);
        (uint256 quote, uint256 base, uint256 available) = CurveMath.tradeStoredTail1(
            lotUnits,
            cost,
            head,
            tickLotUnits,
            true,
            amount,
            0,
            left,
            type(uint256).max
        );
        (uint256 base_, uint256 quote_, uint256 available_) = CurveMath._closeBase(
            Segments.ASK,
            amount,
            numerator,
            lotUnits,
            left,
            cost
        );
        assert(base == base_);
        assert(quote == quote_);
        assert(available == available_);
    }

    function sellerGetsRoundedDown(
        uint256 amount,
        uint256 head,
        uint256 lotUnits,
        uint256 tickLotUnits,
        uint256 cost
    ) external pure {
        (, uint256 numerator) = _given(head, lotUnits, tickLotUnits);
        require(amount > 0);
        require(cost < 2 ** 120);
        require(numerator < 2 ** 128);
        (uint256 quote, uint256 base, ) = CurveMath.tradeStoredTail1(
            lotUnits,
            cost,
            head,
            tickLotUnits,
            false,
            amount,
            0,
            0,
            CurveMath.ENOUGH
        );
        assert(quote * (lotUnits * 256) <= cost * numerator);
        assert(quote * (lotUnits * 256) + lotUnits * 256 > cost * numerator);
        assert(base == (quote == 0 ? 0 : amount));
    }

    function beyondDepthNothingIsSold(
        uint256 amount,
        uint256 head,
        uint256 lotUnits,
        uint256 tickLotUnits,
        uint256 left,
        uint256 cost
    ) external pure {
        _given(head, lotUnits, tickLotUnits);
        require(left > 0);
        require(left <= amount);
        (uint256 quote, uint256 base, uint256 available) = CurveMath.tradeStoredTail1(
            lotUnits,
            cost,
            head,
            tickLotUnits,
            false,
            amount,
            0,
            left,
            CurveMath.ENOUGH
        );
        assert(quote == 0);
        assert(base == 0);
        assert(available == amount - left);
    }

    /// @dev A cost that was met, of a buyer and a seller.
    function metCostIsPaidWhole(
        bool isBuy,
        uint256 amount,
        uint256 head,
        uint256 lotUnits,
        uint256 tickLotUnits,
        uint256 found
    ) external pure {
        _given(head, lotUnits, tickLotUnits);
        (uint256 available, uint256 base, uint256 quote) = CurveMath.tradeStoredTail0(
            lotUnits,
            head,
            tickLotUnits,
            amount,
            isBuy,
            CurveMath.MET,
            CurveMath.ENOUGH,
            found,
            0
        );
        assert(base == found);
        assert(quote == (found == 0 ? 0 : amount));
        assert(available == CurveMath.ENOUGH);
    }

    /// @dev A side that yields less than a seller asks for is not sold to.
    function aSideThatYieldsTooLittleIsNotSold(
        uint256 amount,
        uint256 head,
        uint256 lotUnits,
        uint256 tickLotUnits,
        uint256 left,
        uint256 found
    ) external pure {
        _given(head, lotUnits, tickLotUnits);
        require(left < CurveMath.MET);
        (, uint256 base, uint256 quote) = CurveMath.tradeStoredTail0(
            lotUnits,
            head,
            tickLotUnits,
            amount,
            false,
            left,
            CurveMath.ENOUGH,
            found,
            0
        );
        assert(base == 0);
        assert(quote == 0);
    }

    /// @dev One that costs less than a buyer pays is not bought, unless rounding alone makes the difference.
    function aSideThatCostsLessIsNotBought(
        uint256 amount,
        uint256 head,
        uint256 lotUnits,
        uint256 tickLotUnits,
        uint256 left,
        uint256 found
    ) external pure {
        _given(head, lotUnits, tickLotUnits);
        require(left < CurveMath.MET);
        (uint256 available, uint256 base, uint256 quote) = CurveMath.tradeStoredTail0(
            lotUnits,
            head,
            tickLotUnits,
            amount,
            true,
            left,
            CurveMath.ENOUGH,
            found,
            0
        );
        assert(base == (available == amount ? found : 0));
        assert(quote == (base == 0 ? 0 : amount));
    }
}
