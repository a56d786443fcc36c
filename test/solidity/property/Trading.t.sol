// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {Curves} from "../support/Curves.sol";
import {Platform} from "../support/Platform.sol";

/// @notice What takers and makers may rely on, whatever was posted and whatever was traded before.
contract TradingTest is Platform {
    /* QUOTE AND SWAP */

    function testFuzz_QuoteEqualsSwap(uint256 seed, uint256 amount, bool isBuy, bool exactOut, uint256 rate) external {
        uint256[1] memory rng = [seed];
        _postRandom(rng);
        _tradeSome(rng, 2);
        rate = bound(rate, 0, 10_000);
        amount = _sensible(amount, isBuy == exactOut);
        _setFee(rate);
        (address tokenIn, address tokenOut) = _pair(isBuy);
        uint256 quoted = exactOut ? _quoteExactOutput(isBuy, amount) : _quote(isBuy, amount);
        uint256 net = entrypoint.quoteFor(TAKER, tokenIn, tokenOut, amount);
        // On exact-out, ask for what is left of the gross amount quoted, so that both name the same gross.
        uint256 asked = exactOut ? amount - (amount * rate) / 1e6 : amount;
        if (exactOut && asked != 0) {
            // Another gross amount may leave the same net; the smallest is taken.
            if (amount - 1 - ((amount - 1) * rate) / 1e6 == asked) quoted = _quoteExactOutput(isBuy, amount - 1);
        }
        vm.prank(TAKER);
        if (quoted == 0) vm.expectRevert();
        uint256 result =
            exactOut
                ? entrypoint.swapExactOutput(tokenIn, tokenOut, asked, type(uint256).max, TAKER, START)
                : entrypoint.swap(tokenIn, tokenOut, asked, 0, TAKER, START);
        if (quoted == 0) return;
        assertEq(result, exactOut ? quoted : quoted - (quoted * rate) / 1e6, "as quoted");
        if (!exactOut) assertEq(result, net, "as quoted for the taker");
    }

    function testFuzz_QuotesNeverRevert(uint256 seed, uint256 amount, address tokenIn, address tokenOut) external {
        uint256[1] memory rng = [seed];
        _postRandom(rng);
        vm.warp(START + draw(rng, 0, MAX_TTL_SEC + 1));
        entrypoint.quote(tokenIn, tokenOut, amount);
        for (uint256 i = 0; i < 2; ++i) {
            _quote(i == 0, amount);
            _quoteExactOutput(i == 0, amount);
            entrypoint.quoteFor(TAKER, address(base), address(quote), amount);
        }
    }

    /// @dev However absurd the words, as long as a poster sends them: the market trades or refuses, with an error of its own.
    function testFuzz_GarbageWordsNeverPanic(
        uint256[8] memory words,
        uint256 amount,
        uint96 snap,
        bool isBuy
    ) external {
        Curve memory c = _fresh(new uint256[](4), new uint256[](4));
        (c.snapAsk, c.snapBid) = (snap, snap);
        for (uint256 i = 0; i < 8; ++i) {
            uint256 word = i % 4 == 0 ? (words[i] & ~(uint256(7) << 249)) | (uint256(4) << 249) : words[i];
            if (i < 4) c.asks[i] = word;
            else c.bids[i - 4] = word;
        }
        bytes memory data = bytes.concat(_blockRef(), _fullRecord(market, c));
        vm.prank(CURVE_POSTER);
        try book.post(data) {} catch (bytes memory reason) {
            assertEq(bytes32(bytes4(reason)), bytes32(ICurveBook.CrossedCurve.selector), "crossed");
            return;
        }
        (address tokenIn, address tokenOut) = _pair(isBuy);
        uint256 quoted = entrypoint.quote(tokenIn, tokenOut, amount);
        vm.prank(TAKER);
        try entrypoint.swap(tokenIn, tokenOut, amount, 0, TAKER, START) returns (uint256 out) {
            assertEq(out, quoted, "as quoted");
        } catch (bytes memory reason) {
            assertEq(quoted, 0, "quoted nothing");
            assertTrue(bytes4(reason) != 0x4e487b71, "no panic");
        }
    }

    /* NOBODY GAINS FROM THE CURVE ITSELF */

    function testFuzz_RoundTripNeverGains(uint256 seed, uint256 amount, bool buyFirst) external {
        uint256[1] memory rng = [seed];
        _postRandom(rng);
        _tradeSome(rng, 2);
        amount = _sensible(amount, !buyFirst);
        if (_quote(buyFirst, amount) == 0) return;
        uint256 baseBefore = base.balanceOf(TAKER);
        uint256 quoteBefore = quote.balanceOf(TAKER);
        uint256 got = _swap(buyFirst, amount);
        if (_quote(!buyFirst, got) == 0) return;
        _swap(!buyFirst, got);
        assertLe(base.balanceOf(TAKER), baseBefore, "base");
        assertLe(quote.balanceOf(TAKER), quoteBefore, "quote");
    }

    /// @dev Any sequence of swaps in all four modes on one curve that ends where it began in base can't have gained quote.
    function testFuzz_ManySwapsNeverGain(uint256 seed) external {
        uint256[1] memory rng = [seed];
        _postRandom(rng);
        uint256 baseBefore = base.balanceOf(TAKER);
        uint256 quoteBefore = quote.balanceOf(TAKER);
        _tradeSome(rng, 6);
        uint256 baseAfter = base.balanceOf(TAKER);
        bool owes = baseAfter < baseBefore;
        uint256 gap = owes ? baseBefore - baseAfter : baseAfter - baseBefore;
        if (gap != 0) {
            if (owes ? _quoteExactOutput(true, gap) == 0 : _quote(false, gap) == 0) return;
            if (owes) _swapExactOutput(true, gap);
            else _swap(false, gap);
        }
        assertEq(base.balanceOf(TAKER), baseBefore, "closed");
        assertLe(quote.balanceOf(TAKER), quoteBefore, "quote");
    }

    function testFuzz_SplittingNeverHelps(uint256 seed, uint256 a, uint256 b, bool isBuy) external {
        uint256[1] memory rng = [seed];
        _postRandom(rng);
        a = _sensible(a, !isBuy);
        b = _sensible(b, !isBuy);
        uint256 whole = _quote(isBuy, a + b);
        if (whole == 0 || _quote(isBuy, a) == 0) return;
        uint256 parts = _swap(isBuy, a);
        if (_quote(isBuy, b) != 0) parts += _swap(isBuy, b);
        assertLe(parts, whole, "no more in parts");
    }

    /* ONCE-SPENT */

    /// @dev What was taken between a snapshot and its landing is consumed on arrival, up to the end of a segment: a curve and its late
    /// successor, both made from the same book, never sell more than that book has.
    function testFuzz_LatePostDoesNotOfferTwice(uint256 seed, bool isBuy) external {
        uint256[1] memory rng = [seed];
        _postDefault();
        uint256 depth = 15 * 8190 * LOT_UNITS;
        _swapBase(isBuy, draw(rng, 1, depth / 2));
        // The next snapshot reflects that fill: its book has the rest.
        Curve memory late = _fresh(_ladder(600_002, 15), _ladder(599_998, 15));
        uint256 between = draw(rng, 1, depth / 2 - 1);
        _swapBase(isBuy, between);
        _post(late);
        uint256 entered = _enteredLadder(depth, 0, between);
        assertEq(_depth(isBuy), depth - entered, "the side that traded");
        assertEq(_depth(!isBuy), depth, "the other side");
        if (entered == depth) return;
        // The walk goes on behind that end.
        (address tokenIn, address tokenOut) = _pair(isBuy);
        (uint256 amountIn, uint256 amountOut) = book.preview(tokenIn, tokenOut, 1e15, isBuy);
        uint256 g = Curves.cost(isBuy ? late.asks : late.bids, isBuy, LOT_UNITS, entered, 1e15);
        uint256 units = isBuy ? (g + 256 * LOT_UNITS - 1) / (256 * LOT_UNITS) : g / (256 * LOT_UNITS);
        assertEq(isBuy ? amountIn : amountOut, units, "price");
    }

    /// @dev Any interleaving of fills with posts made from older and newer snapshots: what is left is always the posted depth less what was
    /// taken since the snapshot, up to the end of a segment on landing, and a side never sells more than its snapshots held.
    function testFuzz_DepthIsPostedLessTakenSince(uint256 seed) external {
        uint256[1] memory rng = [seed];
        uint256[2] memory taken;
        uint256[2] memory snap;
        uint256[2] memory consumed;
        uint256 knots = 0;
        for (uint256 i = 0; i < 12; ++i) {
            if (i == 0 || draw(rng, 0, 2) == 0) {
                knots = draw(rng, 0, 31);
                Curve memory c = _fresh(_ladder(600_002, knots), _ladder(599_998, knots));
                // A snapshot may be as old as the last one was, or as new as the present.
                snap[0] = draw(rng, snap[0], taken[0]);
                snap[1] = draw(rng, snap[1], taken[1]);
                uint256 exact = draw(rng, 0, 15);
                (c.snapAsk, c.snapBid) = (_volume(exact, snap[0]), _volume(exact, snap[1]));
                _post(c);
                for (uint256 side = 0; side < 2; ++side) {
                    consumed[side] = _enteredLadder(knots * 8190 * LOT_UNITS, exact, taken[side] - snap[side]);
                }
            } else {
                uint256 side = draw(rng, 0, 1);
                uint256 left = _left(knots, consumed[side]);
                uint256 amount = draw(rng, 1, left + 1);
                if (amount > left) continue;
                if (side == 1 && _quote(false, amount) == 0) continue;
                _swapBase(side == 0, amount);
                taken[side] += amount;
                consumed[side] += amount;
            }
            assertEq(_depth(true), _left(knots, consumed[0]), "asks");
            assertEq(_depth(false), _left(knots, consumed[1]), "bids");
        }
        ICurveBook.MarketState memory s = book.marketState(market);
        assertEq(s.cumAsk, taken[0], "cumAsk");
        assertEq(s.cumBid, taken[1], "cumBid");
    }

    /// @dev A snapshot that claims to reflect more than was taken, as after a reorganisation, sells nothing on that side.
    function testFuzz_SnapshotAheadOfTheChainHasNoDepth(uint256 ahead, bool isBuy, uint256 amount) external {
        _postDefault();
        _swapBase(isBuy, 1e18);
        ahead = bound(ahead, 1, 2 ** 91);
        Curve memory c = _fresh(_ladder(600_002, 31), _ladder(599_998, 31));
        if (isBuy) c.snapAsk += uint96(ahead);
        else c.snapBid += uint96(ahead);
        _post(c);
        amount = _sensible(amount, !isBuy);
        (address tokenIn, address tokenOut) = _pair(isBuy);
        assertEq(_quote(isBuy, amount), 0, "quote");
        vm.prank(TAKER);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.InsufficientDepth.selector, amount, 0));
        entrypoint.swap(tokenIn, tokenOut, amount, 0, TAKER, START);
        assertEq(_depth(!isBuy), 31 * 8190 * LOT_UNITS, "the other side");
        // The next post repairs it.
        _postDefault();
        assertEq(_depth(isBuy), 15 * 8190 * LOT_UNITS, "repaired");
    }

    /// @dev Counters go round at 2^96, snapshots at 2^92; the difference doesn't notice.
    function testFuzz_CountersGoRound(uint256 below, bool isBuy) external {
        below = bound(below, 1, 1e18);
        // The swap word is the first slot of the market, which is the first mapping of the contract's storage.
        bytes32 slot = keccak256(abi.encode(market, _bookLocation()));
        uint256 cum = 2 ** 96 - below;
        uint256 word = uint256(vm.load(address(book), slot));
        vm.store(address(book), slot, bytes32(word | (cum << (isBuy ? 160 : 64))));
        _postDefault();
        uint256 depth = 15 * 8190 * LOT_UNITS;
        assertEq(_depth(isBuy), depth, "before");
        _swapBase(isBuy, 1e18 + 1e17);
        assertEq(_depth(isBuy), depth - 1.1e18, "after");
        ICurveBook.MarketState memory s = book.marketState(market);
        assertEq(isBuy ? s.cumAsk : s.cumBid, 1.1e18 - below, "gone round");
        assertEq(isBuy ? s.cumBid : s.cumAsk, 0, "the other side");
        assertEq(s.fillSeq, 1, "fillSeq");
        _postDefault();
        assertEq(_depth(isBuy), depth, "reflected");
    }

    /* THE VAULT */

    /// @dev Swaps of any kind never touch what is claimed, and the vault's books balance against what takers gave and got.
    function testFuzz_ClaimsStayCovered(uint256 seed) external {
        uint256[1] memory rng = [seed];
        _postRandom(rng);
        uint256 held = base.balanceOf(address(custodian));
        uint256 heldQuote = quote.balanceOf(address(custodian));
        uint256 free = draw(rng, 0, 3e18);
        vm.startPrank(CLAIM_POSTER);
        custodian.settleWithdraw(MAKER, address(base), held - free, 0);
        custodian.settleWithdraw(MAKER, address(quote), heldQuote - (free % 10_000e6), 0);
        vm.stopPrank();
        _tradeSome(rng, 6);
        assertLe(held - free, base.balanceOf(address(custodian)), "base claims");
        assertLe(heldQuote - (free % 10_000e6), quote.balanceOf(address(custodian)), "quote claims");
        assertEq(base.balanceOf(address(custodian)) + base.balanceOf(TAKER), held + 10 ** 30, "base");
        assertEq(quote.balanceOf(address(custodian)) + quote.balanceOf(TAKER), heldQuote + 10 ** 30, "quote");
    }

    /* HELPERS */

    function _left(uint256 knots, uint256 consumed) private pure returns (uint256) {
        uint256 depth = knots * 8190 * LOT_UNITS;
        return depth > consumed ? depth - consumed : 0;
    }

    /// @dev Asks above bids, from one knot to 31, prices around 3000.
    function _postRandom(uint256[1] memory rng) private {
        uint256[2] memory counts = [draw(rng, 0, 31), draw(rng, 0, 31)];
        uint256[][] memory sides = new uint256[][](2);
        for (uint256 side = 0; side < 2; ++side) {
            Curves.Segment[] memory s = new Curves.Segment[](counts[side]);
            uint256 offset = 0;
            for (uint256 i = 0; i < s.length; ++i) {
                s[i] = Curves.Segment(draw(rng, 1, 4095), draw(rng, 0, 3), offset);
                offset += draw(rng, 0, 500);
            }
            sides[side] = Curves.pack(7, side == 0 ? 600_001 : 600_000, s);
        }
        _post(_fresh(sides[0], sides[1]));
    }

    /// @dev Swaps of random mode and size; those that the market refuses are left out.
    function _tradeSome(uint256[1] memory rng, uint256 count) private {
        for (uint256 i = 0; i < count; ++i) {
            bool isBuy = draw(rng, 0, 1) == 0;
            bool exactOut = draw(rng, 0, 1) == 0;
            uint256 amount = _sensible(draw(rng), isBuy == exactOut);
            if (exactOut) {
                if (_quoteExactOutput(isBuy, amount) != 0) _swapExactOutput(isBuy, amount);
            } else if (_quote(isBuy, amount) != 0) {
                _swap(isBuy, amount);
            }
        }
    }

    /// @dev Amounts of every order of magnitude up to a few thousand dollars, in base or quote units.
    function _sensible(uint256 amount, bool inBase) private pure returns (uint256) {
        uint256 most = inBase ? 2e18 : 6000e6;
        return 1 + ((amount >> 8) % (most >> (amount % (inBase ? 60 : 32))));
    }

    /// @dev Takes exactly `units` of base from one side.
    function _swapBase(bool isBuy, uint256 units) private {
        if (isBuy) _swapExactOutput(true, units);
        else _swap(false, units);
    }

    function _bookLocation() private pure returns (uint256) {
        return uint256(keccak256(abi.encode(uint256(keccak256("curvebook.storage.CurveBook")) - 1))) & ~uint256(0xff);
    }
}
