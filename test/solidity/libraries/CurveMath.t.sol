// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CurveArithmetic, ICurveMath} from "../support/CurveArithmetic.sol";
import {Curves} from "../support/Curves.sol";

/// @notice The arithmetic against a plain model of it: prices and lengths unpacked into arrays, costs summed from the start.
contract CurveMathTest is CurveArithmetic {
    /* HAND-MADE CASES: asks of 100 and 200 lots at 1000 and 1001 subticks, lot 10 units, 256 subticks x 10 units = 1 quote unit */

    function test_BuyExactOutRoundsUp() external view {
        ICurveMath.Trade memory t = _trade(_two(), true, true, 1, 0);
        // 1 x 1000 / 2560 = 0.39
        _expect(t, ICurveMath.Outcome.Filled, 1, 1);
        // (1000 x 1000 + 2000 x 1001) / 2560 = 1172.65
        _expect(_trade(_two(), true, true, 3000, 0), ICurveMath.Outcome.Filled, 3000, 1173);
        // (999 x 1000 + 1001) / 2560 = 390.63, from offset 1
        _expect(_trade(_two(), true, true, 1000, 1), ICurveMath.Outcome.Filled, 1000, 391);
    }

    function test_BuyExactInFindsTheLargestBase() external view {
        // 2 x 2560 = 5120 = 5 x 1000 + 120
        _expect(_trade(_two(), true, false, 2, 0), ICurveMath.Outcome.Filled, 5, 2);
        // 391 x 2560 = 1000960, which is 1000 units of the first segment and less than one of the second
        _expect(_trade(_two(), true, false, 391, 0), ICurveMath.Outcome.Filled, 1000, 391);
        _expect(_trade(_two(), true, false, 1173, 0), ICurveMath.Outcome.Filled, 3000, 1173);
    }

    function test_SellExactInRoundsDown() external view {
        _expect(_trade(_two(), false, false, 1, 0), ICurveMath.Outcome.ZeroOutput, 0, 0);
        // 3 x 1000 / 2560 = 1.17; bids go down: 1000, 999
        _expect(_trade(_two(), false, false, 3, 0), ICurveMath.Outcome.Filled, 3, 1);
        // (1000 x 1000 + 2000 x 999) / 2560 = 1171.09
        _expect(_trade(_two(), false, false, 3000, 0), ICurveMath.Outcome.Filled, 3000, 1171);
    }

    function test_SellExactOutFindsTheSmallestBase() external view {
        _expect(_trade(_two(), false, true, 1, 0), ICurveMath.Outcome.Filled, 3, 1);
        // 391 x 2560 = 1000960 > 1000 x 1000: one unit of the second segment at 999 is enough (1000999)
        _expect(_trade(_two(), false, true, 391, 0), ICurveMath.Outcome.Filled, 1001, 391);
        _expect(_trade(_two(), false, true, 1171, 0), ICurveMath.Outcome.Filled, 3000, 1171);
    }

    function test_NothingIsFilledInPart() external view {
        uint256[4] memory beyond = [uint256(3001), 1174, 3001, 1172];
        uint256[4] memory available = [uint256(3000), 1173, 3000, 1171];
        for (uint256 mode = 0; mode < 4; ++mode) {
            bool isBuy = mode < 2;
            bool exactOut = mode == 0 || mode == 3;
            ICurveMath.Trade memory t = _trade(_two(), isBuy, exactOut, beyond[mode], 0);
            _expect(t, ICurveMath.Outcome.InsufficientDepth, 0, 0);
            assertEq(t.available, available[mode], "available");
            t = _trade(_two(), isBuy, exactOut, available[mode], 0);
            assertEq(uint256(t.outcome), uint256(ICurveMath.Outcome.Filled), "all of it");
        }
    }

    function test_TheLeastSegmentTrades() external {
        Curves.Segment[] memory s = new Curves.Segment[](1);
        s[0] = Curves.Segment(1, 0, 0);
        for (uint256 mode = 0; mode < 4; ++mode) {
            // One base unit at one subtick, which is one quote unit.
            _expectBoth(Curves.pack(0, 1, s), mode, 1, 1, [uint256(1), 256]);
        }
    }

    function test_TheLeastRemainderRoundsUpForBuyers() external {
        Curves.Segment[] memory s = new Curves.Segment[](1);
        s[0] = Curves.Segment(1, 0, 0);
        // 257 / 256
        _expectBoth(Curves.pack(0, 257, s), 0, 1, 2, [uint256(1), 1]);
        _expectBoth(Curves.pack(0, 257, s), 1, 1, 2, [uint256(1), 1]);
    }

    function test_ZeroAndHugeAmounts() external view {
        for (uint256 mode = 0; mode < 4; ++mode) {
            bool isBuy = mode < 2;
            bool exactOut = mode % 2 == 0;
            _expect(_trade(_two(), isBuy, exactOut, 0, 0), ICurveMath.Outcome.ZeroAmount, 0, 0);
            _expect(_trade(_two(), isBuy, exactOut, 1 << 100, 0), ICurveMath.Outcome.AmountTooLarge, 0, 0);
            _expect(_trade(_two(), isBuy, exactOut, type(uint256).max, 0), ICurveMath.Outcome.AmountTooLarge, 0, 0);
            _expect(_trade(_two(), isBuy, exactOut, (1 << 100) - 1, 0), ICurveMath.Outcome.InsufficientDepth, 0, 0);
        }
    }

    function test_ZeroMantissaEndsTheSide() external view {
        Curves.Segment[] memory s = new Curves.Segment[](3);
        s[0] = Curves.Segment(1, 0, 0);
        s[1] = Curves.Segment(0, 5, 7);
        s[2] = Curves.Segment(1, 0, 1);
        assertEq(_trade(Curves.pack(0, 1000, s), true, true, 11, 0).available, 10, "available");
    }

    function test_PriceOfZeroOrLessEndsTheSide() external view {
        Curves.Segment[] memory s = new Curves.Segment[](2);
        s[0] = Curves.Segment(1, 0, 0);
        s[1] = Curves.Segment(1, 0, 9);
        for (uint256 base = 8; base < 10; ++base) {
            assertEq(_trade(Curves.pack(3, base, s), false, false, 11, 0).available, 10, "bids");
        }
        assertEq(_trade(Curves.pack(3, 0, s), true, true, 1, 0).available, 0, "asks for nothing");
    }

    function test_WidestCurveDoesNotOverflow() external view {
        Curves.Segment[] memory s = new Curves.Segment[](31);
        for (uint256 i = 0; i < 31; ++i) {
            s[i] = Curves.Segment(4095, 15, 65535);
        }
        uint256[] memory words = Curves.pack(15, 2 ** 25 - 1, s);
        uint256 lotUnits = 10 ** 18;
        uint256 tickLotUnits = 1023 * 10 ** 31;
        uint256 all = 31 * uint256(4095) * 2 ** 15 * lotUnits;
        assertLe(all, 2 ** 92 - 1, "depth");
        uint256 price = (2 ** 25 - 1 + 65535) * uint256(2 ** 15);
        uint256[2] memory grid = [lotUnits, tickLotUnits];
        ICurveMath.Trade memory t = _trade(words, true, true, all, 0, grid);
        // Checked arithmetic here: it would revert if the product did not fit.
        assertEq(t.quoteAmount, (all * price * tickLotUnits + 256 * lotUnits - 1) / (256 * lotUnits), "quote");
        t = _trade(words, true, true, 1, all, grid);
        assertEq(uint256(t.outcome), uint256(ICurveMath.Outcome.InsufficientDepth), "end");
        t = _trade(words, true, true, 1, 2 ** 92 - 1, grid);
        assertEq(uint256(t.outcome), uint256(ICurveMath.Outcome.InsufficientDepth), "wrapped");
    }

    /* AGAINST THE MODEL */

    function testFuzz_FixedBase(uint256 seed, uint256 consumed, uint256 amount, bool isBuy) external view {
        Random memory c = randomCurve(seed, isBuy);
        consumed = bound(consumed, 0, c.depth);
        amount = bound(amount, 1, c.depth + 1);
        ICurveMath.Trade memory t = _run(c, isBuy, isBuy, amount, consumed);
        if (amount > c.depth - consumed) {
            _expect(t, ICurveMath.Outcome.InsufficientDepth, 0, 0);
            assertEq(t.available, c.depth - consumed, "available");
            return;
        }
        uint256 g = Curves.cost(c.words, isBuy, c.lotUnits, consumed, amount) * c.tickLotUnits;
        uint256 quote = isBuy ? _ceil(g, c.lotUnits * 256) : g / (c.lotUnits * 256);
        if (quote == 0) _expect(t, ICurveMath.Outcome.ZeroOutput, 0, 0);
        else _expect(t, ICurveMath.Outcome.Filled, amount, quote);
    }

    /// @dev The base is maximal: it costs at most what comes in, and one unit more would cost more. Beyond the price of the whole side
    /// nothing is filled.
    function testFuzz_BuyExactIn(uint256 seed, uint256 consumed, uint256 amount) external view {
        Random memory c = randomCurve(seed, true);
        consumed = bound(consumed, 0, c.depth);
        uint256 whole = _price(c, true, consumed, c.depth - consumed);
        amount = bound(amount, 1, _min(whole + 2, MAX_AMOUNT));
        ICurveMath.Trade memory t = _run(c, true, false, amount, consumed);
        if (amount > whole) {
            bool nothing = t.outcome == ICurveMath.Outcome.ZeroOutput;
            if (!nothing) assertEq(t.available, whole, "available");
            if (!nothing) _expect(t, ICurveMath.Outcome.InsufficientDepth, 0, 0);
            return;
        }
        uint256 base = t.baseAmount;
        if (t.outcome != ICurveMath.Outcome.ZeroOutput) _expect(t, ICurveMath.Outcome.Filled, base, amount);
        assertLe(_price(c, true, consumed, base), amount, "affordable");
        if (base < c.depth - consumed) {
            assertLe(amount + 1, _price(c, true, consumed, base + 1), "maximal");
        }
    }

    function testFuzz_SellExactOut(uint256 seed, uint256 consumed, uint256 amount) external view {
        Random memory c = randomCurve(seed, false);
        consumed = bound(consumed, 0, c.depth);
        uint256 whole = _price(c, false, consumed, c.depth - consumed);
        amount = bound(amount, 1, _min(whole + 2, MAX_AMOUNT));
        ICurveMath.Trade memory t = _run(c, false, true, amount, consumed);
        if (amount > whole) {
            _expect(t, ICurveMath.Outcome.InsufficientDepth, 0, 0);
            assertEq(t.available, whole, "available");
            return;
        }
        _expect(t, ICurveMath.Outcome.Filled, t.baseAmount, amount);
        assertLe(amount, _price(c, false, consumed, t.baseAmount), "enough");
        assertLe(_price(c, false, consumed, t.baseAmount - 1), amount - 1, "minimal");
    }

    /// @dev In all four modes: two trades in a row never beat one of the same total.
    function testFuzz_SplittingNeverHelps(
        uint256 seed,
        uint256 consumed,
        uint256 a,
        uint256 b,
        uint8 mode
    ) external view {
        bool isBuy = mode % 4 < 2;
        bool exactOut = mode % 2 == 0;
        Random memory c = randomCurve(seed, isBuy);
        consumed = bound(consumed, 0, c.depth);
        uint256 most = isBuy == exactOut ? c.depth - consumed : _price(c, isBuy, consumed, c.depth - consumed);
        most = _min(most, MAX_AMOUNT);
        if (most < 2) return;
        a = bound(a, 1, most - 1);
        b = bound(b, 1, most - a);
        ICurveMath.Trade memory first = _run(c, isBuy, exactOut, a, consumed);
        ICurveMath.Trade memory second = _run(c, isBuy, exactOut, b, consumed + first.baseAmount);
        if (first.outcome != ICurveMath.Outcome.Filled || second.outcome != ICurveMath.Outcome.Filled) return;
        _compare(_run(c, isBuy, exactOut, a + b, consumed), first, second, isBuy, exactOut);
    }

    function _compare(
        ICurveMath.Trade memory whole,
        ICurveMath.Trade memory first,
        ICurveMath.Trade memory second,
        bool isBuy,
        bool exactOut
    ) private pure {
        assertEq(uint256(whole.outcome), uint256(ICurveMath.Outcome.Filled), "the whole fills too");
        if (exactOut) assertLe(_in(whole, isBuy), _in(first, isBuy) + _in(second, isBuy), "pays no less in parts");
        else assertLe(_out(first, isBuy) + _out(second, isBuy), _out(whole, isBuy), "gets no more in parts");
    }

    /// @dev What exact-in delivers costs no more as exact-out, and what exact-out costs delivers no less as exact-in.
    function testFuzz_ModesInvertEachOther(uint256 seed, uint256 consumed, uint256 amount, bool isBuy) external view {
        Random memory c = randomCurve(seed, isBuy);
        consumed = bound(consumed, 0, c.depth);
        uint256 most = isBuy ? _price(c, true, consumed, c.depth - consumed) : c.depth - consumed;
        amount = bound(amount, 1, _min(most + 1, MAX_AMOUNT));
        ICurveMath.Trade memory given = _run(c, isBuy, false, amount, consumed);
        if (given.outcome != ICurveMath.Outcome.Filled || _out(given, isBuy) > MAX_AMOUNT) return;
        ICurveMath.Trade memory back = _run(c, isBuy, true, _out(given, isBuy), consumed);
        assertEq(uint256(back.outcome), uint256(ICurveMath.Outcome.Filled), "the output can be asked for");
        assertLe(_in(back, isBuy), amount, "at no higher price");
        ICurveMath.Trade memory again = _run(c, isBuy, false, _in(back, isBuy), consumed);
        assertEq(_out(again, isBuy), _out(given, isBuy), "and that price buys it");
    }

    function testFuzz_MoreInNeverGivesLessOut(
        uint256 seed,
        uint256 consumed,
        uint256 a,
        uint256 b,
        bool isBuy
    ) external view {
        Random memory c = randomCurve(seed, isBuy);
        consumed = bound(consumed, 0, c.depth);
        uint256 most = isBuy ? _price(c, true, consumed, c.depth - consumed) : c.depth - consumed;
        if (most == 0) return;
        b = bound(b, 1, _min(most, MAX_AMOUNT));
        a = bound(a, 1, b);
        uint256 less = _out(_run(c, isBuy, false, a, consumed), isBuy);
        assertLe(less, _out(_run(c, isBuy, false, b, consumed), isBuy), "monotone");
    }

    /// @dev Words in storage give the same results as words in memory, and words behind those counted are never looked at.
    function testFuzz_StoredWordsAreTheSame(uint256 seed, uint256 consumed, uint256 amount, uint8 mode) external {
        bool isBuy = mode % 4 < 2;
        Random memory c = randomCurve(seed, isBuy);
        consumed = bound(consumed, 0, c.depth + 1);
        amount = bound(amount, 0, c.depth + 1);
        uint256[4] memory stored;
        for (uint256 i = 0; i < 4; ++i) {
            if (i < c.words.length) stored[i] = c.words[i];
            else if (i != 0) stored[i] = type(uint256).max;
        }
        math.store(seed, stored);
        ICurveMath.Case memory one = _case(
            c.words,
            isBuy,
            mode % 2 == 0,
            amount,
            consumed,
            [c.lotUnits, c.tickLotUnits]
        );
        ICurveMath.Trade memory a = _run(c, isBuy, mode % 2 == 0, amount, consumed);
        assertEq(keccak256(abi.encode(a)), keccak256(abi.encode(math.tradeStored(seed, one))), "same trade");
    }

    /// @dev The least that can be consumed counts, too: on a side of 1000 base at 1000 subticks and 2000 at one, it costs a thousand times more
    /// than what takes its place.
    function test_OneUnitConsumed() external {
        Curves.Segment[] memory s = new Curves.Segment[](2);
        (s[0], s[1]) = (Curves.Segment(100, 0, 0), Curves.Segment(200, 0, 999));
        uint256[] memory words = Curves.pack(0, 1000, s);
        uint256[4] memory stored;
        stored[0] = words[0];
        math.store(0, stored);
        uint256[2] memory grid = [uint256(10), 2560];
        // 999 at 1000, and 501 at 1.
        _expect(_trade(words, false, true, 999_501, 1, grid), ICurveMath.Outcome.Filled, 1500, 999_501);
        _expect(_trade(words, false, false, 1500, 1, grid), ICurveMath.Outcome.Filled, 1500, 999_501);
        for (uint256 mode = 0; mode < 2; ++mode) {
            uint256 amount = mode == 0 ? 999_501 : 1500;
            ICurveMath.Case memory one = _case(words, false, mode == 0, amount, 1, grid);
            _expect(math.tradeStored(0, one), ICurveMath.Outcome.Filled, 1500, 999_501);
        }
    }

    function testFuzz_BestSubticks(uint256 seed, bool ask) external view {
        Random memory c = randomCurve(seed, ask);
        (, uint256[] memory subticks) = Curves.unpack(c.words, ask);
        uint256 best = 0;
        for (uint256 i = 0; i < subticks.length && subticks[i] != 0; ++i) {
            if (best == 0 || (ask ? subticks[i] < best : subticks[i] > best)) best = subticks[i];
        }
        uint256[] memory none = new uint256[](0);
        (uint256 bestAsk, uint256 bestBid) = ask ? math.bestSubticks(c.words, none) : math.bestSubticks(none, c.words);
        assertEq(ask ? bestAsk : bestBid, best, "best");
    }

    /* HELPERS */

    function _two() private pure returns (uint256[] memory) {
        Curves.Segment[] memory s = new Curves.Segment[](2);
        s[0] = Curves.Segment(100, 0, 0);
        s[1] = Curves.Segment(200, 0, 1);
        return Curves.pack(0, 1000, s);
    }

    function _trade(
        uint256[] memory words,
        bool isBuy,
        bool exactOut,
        uint256 amount,
        uint256 consumed
    ) private view returns (ICurveMath.Trade memory) {
        return _trade(words, isBuy, exactOut, amount, consumed, [uint256(10), 1]);
    }

    /// @dev The same trade with the words in memory and in storage; modes 0 and 1 buy, modes 0 and 3 fix what goes out.
    function _expectBoth(
        uint256[] memory words,
        uint256 mode,
        uint256 base,
        uint256 quote,
        uint256[2] memory grid
    ) private {
        (bool isBuy, bool exactOut) = (mode < 2, mode == 0 || mode == 3);
        uint256 amount = isBuy == exactOut ? base : quote;
        _expect(_trade(words, isBuy, exactOut, amount, 0, grid), ICurveMath.Outcome.Filled, base, quote);
        uint256[4] memory stored;
        stored[0] = words[0];
        math.store(mode, stored);
        ICurveMath.Case memory one = _case(words, isBuy, exactOut, amount, 0, grid);
        _expect(math.tradeStored(mode, one), ICurveMath.Outcome.Filled, base, quote);
    }

    function _run(
        Random memory c,
        bool isBuy,
        bool exactOut,
        uint256 amount,
        uint256 consumed
    ) private view returns (ICurveMath.Trade memory) {
        return _trade(c.words, isBuy, exactOut, amount, consumed, [c.lotUnits, c.tickLotUnits]);
    }

    /// @dev What the taker pays for `base` on a buy, or gets for it on a sell.
    function _price(Random memory c, bool isBuy, uint256 consumed, uint256 base) private pure returns (uint256) {
        uint256 g = Curves.cost(c.words, isBuy, c.lotUnits, consumed, base) * c.tickLotUnits;
        return isBuy ? _ceil(g, c.lotUnits * 256) : g / (c.lotUnits * 256);
    }

    function _expect(ICurveMath.Trade memory t, ICurveMath.Outcome outcome, uint256 base, uint256 quote) private pure {
        assertEq(uint256(t.outcome), uint256(outcome), "outcome");
        assertEq(t.baseAmount, base, "base");
        assertEq(t.quoteAmount, quote, "quote");
    }

    function _in(ICurveMath.Trade memory t, bool isBuy) private pure returns (uint256) {
        return isBuy ? t.quoteAmount : t.baseAmount;
    }

    function _out(ICurveMath.Trade memory t, bool isBuy) private pure returns (uint256) {
        return isBuy ? t.baseAmount : t.quoteAmount;
    }

    function _ceil(uint256 a, uint256 b) private pure returns (uint256) {
        return a / b + (a % b == 0 ? 0 : 1);
    }

    function _min(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
