// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ClaimWord} from "../../../contracts/types/ClaimWord.sol";
import {Knot, KnotLibrary} from "../../../contracts/types/Knot.sol";
import {MarketScale, MarketScaleLibrary} from "../../../contracts/types/MarketScale.sol";
import {PostWord} from "../../../contracts/types/PostWord.sol";
import {SideHead, SideHeadLibrary} from "../../../contracts/types/SideHead.sol";
import {SwapWord} from "../../../contracts/types/SwapWord.sol";
import {Test} from "../support/Test.sol";

/// @notice Setting one field changes the bits of that field to the value modulo its width, and no other bit.
contract WordsTest is Test {
    function testFuzz_SwapWord(uint256 raw, uint256 value) external pure {
        SwapWord w = SwapWord.wrap(raw);
        _check(raw, SwapWord.unwrap(w.setCumAsk(value)), 160, 96, value);
        _check(raw, SwapWord.unwrap(w.setCumBid(value)), 64, 96, value);
        _check(raw, SwapWord.unwrap(w.setFillSeq(value)), 24, 40, value);
        _check(raw, SwapWord.unwrap(w.setScale(MarketScale.wrap(uint24(value)))), 0, 24, value);
        assertEq(w.cumAsk(), _field(raw, 160, 96), "cumAsk");
        assertEq(w.cumBid(), _field(raw, 64, 96), "cumBid");
        assertEq(w.fillSeq(), _field(raw, 24, 40), "fillSeq");
        assertEq(MarketScale.unwrap(w.scale()), _field(raw, 0, 24), "scale");
    }

    function testFuzz_SwapWordTakesOneSideAndCounts(uint256 raw, bool ask, uint96 units) external pure {
        SwapWord before = SwapWord.wrap(raw);
        SwapWord taken = before.take(ask, units);
        assertEq(taken.cumAsk(), (before.cumAsk() + (ask ? units : 0)) % 2 ** 96, "cumAsk");
        assertEq(taken.cumBid(), (before.cumBid() + (ask ? 0 : units)) % 2 ** 96, "cumBid");
        assertEq(taken.fillSeq(), (before.fillSeq() + 1) % 2 ** 40, "fillSeq");
        assertEq(MarketScale.unwrap(taken.scale()), MarketScale.unwrap(before.scale()), "scale");
    }

    function testFuzz_PostWord(uint256 raw, uint256 value) external pure {
        PostWord w = PostWord.wrap(raw);
        _check(raw, PostWord.unwrap(w.setSnapAsk(value)), 164, 92, value);
        _check(raw, PostWord.unwrap(w.setSnapBid(value)), 72, 92, value);
        _check(raw, PostWord.unwrap(w.setMaxTtlSec(value)), 64, 8, value);
        _check(raw, PostWord.unwrap(w.setDeadline(value)), 32, 32, value);
        _check(raw, PostWord.unwrap(w.setSeq(value)), 0, 32, value);
        assertEq(w.snapAsk(), _field(raw, 164, 92), "snapAsk");
        assertEq(w.snapBid(), _field(raw, 72, 92), "snapBid");
        assertEq(w.maxTtlSec(), _field(raw, 64, 8), "maxTtlSec");
        assertEq(w.deadline(), _field(raw, 32, 32), "deadline");
        assertEq(w.seq(), _field(raw, 0, 32), "seq");
    }

    function testFuzz_ConsumedIsTheDifferenceModulo2To92(uint256 snap, uint256 cum, bool ask) external pure {
        cum %= 2 ** 96;
        PostWord w = PostWord.wrap(0);
        w = ask ? w.setSnapAsk(snap).setSnapBid(~snap) : w.setSnapBid(snap).setSnapAsk(~snap);
        uint256 expected = ((cum % 2 ** 92) + 2 ** 92 - (snap % 2 ** 92)) % 2 ** 92;
        SwapWord s = SwapWord.wrap(0);
        s = ask ? s.setCumAsk(cum).setCumBid(~cum) : s.setCumBid(cum).setCumAsk(~cum);
        assertEq(w.consumed(ask, s), expected, "consumed");
    }

    function testFuzz_ClaimWord(uint256 raw, uint256 value) external pure {
        ClaimWord w = ClaimWord.wrap(raw);
        _check(raw, ClaimWord.unwrap(w.setAmount(value)), 128, 128, value);
        _check(raw, ClaimWord.unwrap(w.setReadyAt(value)), 64, 64, value);
        _check(raw, ClaimWord.unwrap(w.setBasis(value)), 0, 64, value);
        assertEq(w.amount(), _field(raw, 128, 128), "amount");
        assertEq(w.readyAt(), _field(raw, 64, 64), "readyAt");
        assertEq(w.basis(), _field(raw, 0, 64), "basis");
        unchecked {
            _check(raw, ClaimWord.unwrap(w.bump()), 0, 64, _field(raw, 0, 64) + 1);
        }
    }

    function testFuzz_Knot(uint32 raw, uint256 value) external pure {
        Knot k = Knot.wrap(raw);
        _check(raw, Knot.unwrap(k.setMantissa(value)), 20, 12, value);
        _check(raw, Knot.unwrap(k.setExponent(value)), 16, 4, value);
        _check(raw, Knot.unwrap(k.setPriceOffset(value)), 0, 16, value);
        assertEq(k.mantissa(), _field(raw, 20, 12), "mantissa");
        assertEq(k.exponent(), _field(raw, 16, 4), "exponent");
        assertEq(k.priceOffset(), _field(raw, 0, 16), "priceOffset");
        assertEq(k.lengthLots(), k.mantissa() * 2 ** k.exponent(), "length");
        assertEq(Knot.unwrap(KnotLibrary.top((uint256(raw) << 224) | (value >> 32))), raw, "top");
    }

    function testFuzz_SideHead(uint32 raw, uint256 value) external pure {
        SideHead h = SideHead.wrap(raw);
        _check(raw, SideHead.unwrap(h.setShift(value)), 28, 4, value);
        _check(raw, SideHead.unwrap(h.setWordsUsed(value)), 25, 3, value);
        _check(raw, SideHead.unwrap(h.setBasePrice(value)), 0, 25, value);
        assertEq(h.shift(), _field(raw, 28, 4), "shift");
        assertEq(h.wordsUsed(), _field(raw, 25, 3), "wordsUsed");
        assertEq(h.basePrice(), _field(raw, 0, 25), "basePrice");
        assertEq(SideHead.unwrap(SideHeadLibrary.headOf((uint256(raw) << 224) | (value >> 32))), raw, "of");
    }

    function testFuzz_PriceOfKnot(uint256 shift, uint256 base, uint256 offset) external pure {
        shift %= 2 ** 4;
        base %= 2 ** 25;
        offset %= 2 ** 16;
        SideHead h = SideHead.wrap(0).setShift(shift).setBasePrice(base);
        Knot k = Knot.wrap(0).setPriceOffset(offset);
        assertEq(h.priceOf(k, true), (base + offset) * 2 ** shift, "ask");
        assertEq(h.priceOf(k, false), offset > base ? 0 : (base - offset) * 2 ** shift, "bid");
    }

    function testFuzz_MarketScale(uint256 lot, uint256 mantissa, uint256 tickLot, bool baseIsToken0) external pure {
        lot %= 19;
        mantissa = 1 + (mantissa % 1023);
        tickLot %= 32;
        MarketScale s = MarketScaleLibrary.pack(lot, mantissa, tickLot, baseIsToken0);
        assertEq(s.lotExponent(), lot, "lotExponent");
        assertEq(s.tickLotMantissa(), mantissa, "tickLotMantissa");
        assertEq(s.tickLotExponent(), tickLot, "tickLotExponent");
        assertTrue(s.baseIsToken0() == baseIsToken0, "baseIsToken0");
        assertTrue(s.isListed(), "listed");
        assertEq(s.lotUnits(), 10 ** lot, "lotUnits");
        assertEq(s.tickLotUnits(), mantissa * 10 ** tickLot, "tickLotUnits");
    }

    function test_MarketScaleOfNothingIsNotListed() external pure {
        assertTrue(!MarketScale.wrap(0).isListed(), "listed");
    }

    function _field(uint256 raw, uint256 offset, uint256 width) private pure returns (uint256) {
        return (raw / 2 ** offset) % 2 ** width;
    }

    function _check(uint256 raw, uint256 actual, uint256 offset, uint256 width, uint256 value) private pure {
        unchecked {
            uint256 cleared = raw - _field(raw, offset, width) * 2 ** offset;
            assertEq(actual, cleared + (value % 2 ** width) * 2 ** offset, "one field set");
        }
    }
}
