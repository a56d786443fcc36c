// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CurveMath} from "../../contracts/libraries/CurveMath.sol";
import {TakerFees} from "../../contracts/libraries/TakerFees.sol";
import {Segments} from "./Segments.sol";

/// @notice Rounding, by the library's own functions: a buyer pays quote units rounded up, a seller gets them rounded down.
contract Amounts {
    modifier scaled(uint256 numerator, uint256 lotUnits) {
        require(numerator > 0);
        require(numerator < 2 ** 128);
        require(lotUnits > 0);
        require(lotUnits <= 10 ** 18);
        _;
    }

    function buyerPaysRoundedUp(
        uint256 cost,
        uint256 numerator,
        uint256 lotUnits
    ) external pure scaled(numerator, lotUnits) {
        require(cost < 2 ** 120);
        uint256 quote = CurveMath._quoteUnits(Segments.ASK, cost, numerator, lotUnits);
        assert(quote * (lotUnits * 256) >= cost * numerator);
        assert(quote * (lotUnits * 256) < cost * numerator + lotUnits * 256);
    }

    function sellerGetsRoundedDown(
        uint256 cost,
        uint256 numerator,
        uint256 lotUnits
    ) external pure scaled(numerator, lotUnits) {
        require(cost < 2 ** 120);
        uint256 quote = CurveMath._quoteUnits(Segments.BID, cost, numerator, lotUnits);
        assert(quote * (lotUnits * 256) <= cost * numerator);
        assert(quote * (lotUnits * 256) + lotUnits * 256 > cost * numerator);
    }

    function morePaysNoLess(
        uint256 cost,
        uint256 more,
        uint256 numerator,
        uint256 lotUnits
    ) external pure scaled(numerator, lotUnits) {
        require(cost < 2 ** 120);
        require(more < 2 ** 120);
        require(cost <= more);
        assert(
            CurveMath._quoteUnits(Segments.ASK, cost, numerator, lotUnits) <=
                CurveMath._quoteUnits(Segments.ASK, more, numerator, lotUnits)
        );
        assert(
            CurveMath._quoteUnits(Segments.BID, cost, numerator, lotUnits) <=
                CurveMath._quoteUnits(Segments.BID, more, numerator, lotUnits)
        );
        assert(
            CurveMath._quoteUnits(Segments.BID, cost, numerator, lotUnits) <=
                CurveMath._quoteUnits(Segments.ASK, more, numerator, lotUnits)
        );
    }

    function partsNeverGain(
        uint256 a,
        uint256 b,
        uint256 numerator,
        uint256 lotUnits
    ) external pure scaled(numerator, lotUnits) {
        require(a < 2 ** 119);
        require(b < 2 ** 119);
        assert(
            CurveMath._quoteUnits(Segments.ASK, a, numerator, lotUnits) +
                CurveMath._quoteUnits(Segments.ASK, b, numerator, lotUnits) >=
                CurveMath._quoteUnits(Segments.ASK, a + b, numerator, lotUnits)
        );
        assert(
            CurveMath._quoteUnits(Segments.BID, a, numerator, lotUnits) +
                CurveMath._quoteUnits(Segments.BID, b, numerator, lotUnits) <=
                CurveMath._quoteUnits(Segments.BID, a + b, numerator, lotUnits)
        );
    }

    function buyerSpendsAtMostTheAmount(
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits
    ) external pure scaled(numerator, lotUnits) {
        require(amount > 0);
        require(amount <= CurveMath.MAX_AMOUNT);
        uint256 cost = CurveMath._costOf(Segments.ASK, amount, numerator, lotUnits);
        assert(cost * numerator <= amount * lotUnits * 256);
        assert((cost + 1) * numerator > amount * lotUnits * 256);
        assert(cost < 2 ** 168);
    }

    function sellerYieldsTheAmountAfterTheCost(
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits
    ) external pure scaled(numerator, lotUnits) {
        require(amount > 0);
        require(amount <= CurveMath.MAX_AMOUNT);
        uint256 cost = CurveMath._costOf(Segments.BID, amount, numerator, lotUnits);
        assert(cost * numerator < amount * lotUnits * 256);
        assert((cost + 1) * numerator >= amount * lotUnits * 256);
        assert(cost < 2 ** 168);
    }

    function beyondDepthNothingIsFilled(
        uint256 direction,
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits,
        uint256 left,
        uint256 cost
    ) external pure {
        require(left > 0);
        require(left <= amount);
        (uint256 base, uint256 quote, uint256 available) = CurveMath._closeBase(
            direction,
            amount,
            numerator,
            lotUnits,
            left,
            cost
        );
        assert(base == 0);
        assert(quote == 0);
        assert(available == amount - left);
    }

    function whatIsBoughtIsPaid(
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits,
        uint256 cost
    ) external pure scaled(numerator, lotUnits) {
        require(cost < 2 ** 120);
        (uint256 base, uint256 quote, uint256 available) = CurveMath._closeBase(
            Segments.ASK,
            amount,
            numerator,
            lotUnits,
            0,
            cost
        );
        assert(quote == CurveMath._quoteUnits(Segments.ASK, cost, numerator, lotUnits));
        assert(quote == 0 || base == amount);
        assert(quote != 0 || base == 0);
        assert(available == CurveMath.ENOUGH);
    }

    function whatIsSoldIsPaid(
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits,
        uint256 cost
    ) external pure scaled(numerator, lotUnits) {
        require(cost < 2 ** 120);
        (uint256 base, uint256 quote, uint256 available) = CurveMath._closeBase(
            Segments.BID,
            amount,
            numerator,
            lotUnits,
            0,
            cost
        );
        assert(quote == CurveMath._quoteUnits(Segments.BID, cost, numerator, lotUnits));
        assert(quote == 0 || base == amount);
        assert(quote != 0 || base == 0);
        assert(available == CurveMath.ENOUGH);
    }

    function aMetCostIsPaidWhole(
        uint256 direction,
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits,
        uint256 found
    ) external pure scaled(numerator, lotUnits) {
        (uint256 base, uint256 quote, uint256 available) = CurveMath._closeCost(
            direction,
            amount,
            numerator,
            lotUnits,
            CurveMath.MET,
            found
        );
        assert(base == found);
        assert(base == 0 || quote == amount);
        assert(available == CurveMath.ENOUGH);
    }

    function aSideThatYieldsTooLittleIsNotSold(
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits,
        uint256 left,
        uint256 found
    ) external pure scaled(numerator, lotUnits) {
        require(left < CurveMath.MET);
        (uint256 base, uint256 quote, ) = CurveMath._closeCost(Segments.BID, amount, numerator, lotUnits, left, found);
        assert(base == 0);
        assert(quote == 0);
    }

    function aSideThatCostsLessIsNotBought(
        uint256 amount,
        uint256 numerator,
        uint256 lotUnits,
        uint256 left,
        uint256 found
    ) external pure scaled(numerator, lotUnits) {
        require(left < CurveMath.MET);
        (uint256 base, uint256 quote, uint256 available) = CurveMath._closeCost(
            Segments.ASK,
            amount,
            numerator,
            lotUnits,
            left,
            found
        );
        assert(base == 0 || available == amount);
        assert(base == 0 || base == found);
        assert(base == 0 || quote == amount);
    }

    function outcomes(uint256 amount, uint256 base, uint256 available) external pure {
        CurveMath.Outcome outcome = CurveMath.outcomeOf(amount, base, available);
        assert((outcome == CurveMath.Outcome.Filled) == (base != 0));
    }

    function refusedAmounts(uint256 amount) external pure {
        assert(CurveMath._isRefused(amount) == (amount == 0 || amount > CurveMath.MAX_AMOUNT));
    }

    function feeIsAtMostOnePercent(uint256 gross, uint256 rate) external pure {
        require(gross < 2 ** 236);
        require(rate <= TakerFees.MAX_RATE_PPM);
        uint256 fee = TakerFees.feeOf(gross, rate);
        assert(fee <= gross / 100);
        assert(fee * 1_000_000 <= gross * rate);
    }

    function grossLeavesTheNet(uint256 net, uint256 rate) external pure {
        require(net < 2 ** 200);
        require(rate <= TakerFees.MAX_RATE_PPM);
        uint256 gross = TakerFees.grossFor(net, rate);
        assert(gross - TakerFees.feeOf(gross, rate) == net);
    }
}
