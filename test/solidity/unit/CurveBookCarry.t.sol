// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {Curves} from "../support/Curves.sol";
import {Platform} from "../support/Platform.sol";

/// @notice At which consumption a curve is entered of which something was taken before it landed.
contract CurveBookCarryTest is Platform {
    uint256 private constant SEGMENT = 8190 * LOT_UNITS;
    uint256 private constant MODULUS = 2 ** 92;
    uint256[] private _none;

    /* WHAT WAS TAKEN, BY SWAPS */

    function test_AFillOfAUnitTakesTheWholeFirstSegment() external {
        _postDefault();
        Curve memory late = _fresh(_ladder(600_002, 15), _ladder(599_998, 15));
        _swapExactOutput(true, 1);
        _swap(false, 1e12);
        _post(late);
        assertEq(_depth(true), 14 * SEGMENT, "asks");
        assertEq(_depth(false), 14 * SEGMENT, "bids");
        ICurveBook.MarketState memory s = book.marketState(market);
        assertEq(s.cumAsk, 1, "cumAsk");
        assertEq(s.snapAsk, (MODULUS + 1 - SEGMENT) % MODULUS, "snapAsk");
        assertEq(s.fillSeq, 2, "fillSeq");
    }

    function test_ButNotASegmentOnWhichTheCurveIsTheBook() external {
        _postDefault();
        Curve memory late = _fresh(_ladder(600_002, 15), _ladder(599_998, 15));
        (late.snapAsk, late.snapBid) = (_volume(1, 0), _volume(1, 0));
        _swapExactOutput(true, 1);
        _swap(false, SEGMENT + 1);
        _post(late);
        assertEq(_depth(true), 15 * SEGMENT - 1, "asks");
        assertEq(_depth(false), 13 * SEGMENT, "bids");
    }

    function test_NothingTakenRaisesNothing() external {
        _postDefault();
        _swap(true, 3000e6);
        _swap(false, 1e18);
        _postDefault();
        assertEq(_depth(true), 15 * SEGMENT, "asks");
        assertEq(_depth(false), 15 * SEGMENT, "bids");
        ICurveBook.MarketState memory s = book.marketState(market);
        assertEq(s.snapAsk, s.cumAsk, "snapAsk");
        assertEq(s.snapBid, s.cumBid, "snapBid");
    }

    /// @dev What a record names that nobody applied is of no account, and what a touch finds taken is not raised.
    function test_OnlyWhatGoesLiveRaises() external {
        _postDefault();
        Curve memory late = _fresh(_ladder(600_002, 15), _ladder(599_998, 15));
        _swapExactOutput(true, 1);
        _post(_touchRecord(market, 2, late.deadline, 1));
        assertEq(_depth(true), 15 * SEGMENT - 1, "after a touch");
        bytes memory skipped = bytes.concat(_blockRef(), _fullRecord(market, late));
        vm.prank(CURVE_POSTER);
        assertEq(book.postBatch(skipped), 0, "skipped");
        assertEq(_depth(true), 15 * SEGMENT - 1, "after what was skipped");
        late.seq = 3;
        _post(late);
        assertEq(_depth(true), 14 * SEGMENT, "after the post");
        _swapExactOutput(true, 1);
        _post(_touchRecord(market, 4, late.deadline, 3));
        assertEq(_depth(true), 14 * SEGMENT - 1, "a raise lives on with its curve");
        // The next curve counts from the volume of its own snapshot.
        _postDefault();
        assertEq(_depth(true), 15 * SEGMENT, "and no longer");
    }

    /// @dev In a batch each market by itself.
    function test_EveryMarketOfABatchIsRaised() external {
        address third = address(_newToken("Other", 18));
        vm.prank(OWNER);
        bytes32 other = book.listMarket(third, address(quote), 15, 1, 0, MAX_TTL_SEC);
        Curve memory c = _fresh(_ladder(600_002, 15), _ladder(599_998, 15));
        (c.snapAsk, c.snapBid) = (_named(0, 1), _named(3, 3 * SEGMENT));
        Curve memory o = _fresh(_ladder(600_002, 31), _none);
        (o.snapAsk, o.snapBid) = (_named(0, 30 * 10 * SEGMENT + 1), _named(0, 1));
        bytes memory data = bytes.concat(_blockRef(), _fullRecord(market, c), _fullRecord(other, o));
        vm.prank(CURVE_POSTER);
        assertEq(book.postBatch(data), 3, "applied");
        _expectConsumed(market, SEGMENT, 3 * SEGMENT);
        _expectConsumed(other, 31 * 10 * SEGMENT, 1);
    }

    /* EVERY KNOT */

    /// @dev On both sides, of full and of partial posts: at the end of each segment, one unit before and one after, for each count of exact
    /// segments about it.
    function test_EveryKnotAndEveryExactCount() external {
        uint256[6] memory counts = [uint256(1), 7, 8, 15, 16, 31];
        for (uint256 i = 0; i < counts.length; ++i) {
            uint256[1] memory rng = [i];
            uint256[] memory asks = _uneven(600_002, counts[i], rng);
            uint256[] memory bids = _uneven(599_998, counts[i], rng);
            (uint256[] memory askLots, ) = Curves.unpack(asks, true);
            (uint256[] memory bidLots, ) = Curves.unpack(bids, false);
            (uint256 askEnd, uint256 bidEnd) = (0, 0);
            for (uint256 k = 0; k < counts[i]; ++k) {
                askEnd += askLots[k] * LOT_UNITS;
                bidEnd += bidLots[k] * LOT_UNITS;
                for (uint256 n = k < 2 ? 0 : k - 1; n < k + 3 && n < 16; ++n) {
                    for (uint256 d = 0; d < 3; ++d) {
                        bool isPartial = (k + n + d) % 2 == 1;
                        _checkCarry(asks, bids, askEnd + d - 1, bidEnd + 1 - d, n, n, isPartial);
                    }
                }
            }
        }
    }

    /// @dev Whatever the sides, the counters, what was taken and what the record says of exact segments.
    function testFuzz_AnyCarry(uint256 seed, uint256 askCarry, uint256 bidCarry, bool isPartial) external {
        uint256[1] memory rng = [seed];
        uint256[] memory asks = _uneven(600_002, draw(rng, 0, 31), rng);
        uint256[] memory bids = _uneven(599_998, draw(rng, 0, 31), rng);
        bytes32 slot = keccak256(abi.encode(market, _bookLocation()));
        uint256 scale = uint256(vm.load(address(book), slot)) & 0xffffff;
        vm.store(address(book), slot, bytes32((draw(rng) & ~uint256(0xffffff)) | scale));
        (askCarry, bidCarry) = (_carry(askCarry, asks, true), _carry(bidCarry, bids, false));
        _checkCarry(asks, bids, askCarry, bidCarry, draw(rng, 0, 15), draw(rng, 0, 15), isPartial);
    }

    /// @dev Words that a curve was never made of: they land or are refused as without a raise, and what is consumed only ever rises.
    function testFuzz_GarbageWords(uint256[8] memory words, uint256 askCarry, uint256 bidCarry, uint8 exact) external {
        Curve memory c = _fresh(new uint256[](4), new uint256[](4));
        for (uint256 i = 0; i < 8; ++i) {
            uint256 word = i % 4 == 0 ? (words[i] & ~(uint256(7) << 249)) | (uint256(4) << 249) : words[i];
            if (i < 4) c.asks[i] = word;
            else c.bids[i - 4] = word;
        }
        (askCarry, bidCarry) = (_carry(askCarry, c.asks, true), _carry(bidCarry, c.bids, false));
        (c.snapAsk, c.snapBid) = (_named(exact >> 4, askCarry), _named(exact & 15, bidCarry));
        bytes memory data = bytes.concat(_blockRef(), _fullRecord(market, c));
        vm.prank(CURVE_POSTER);
        try book.post(data) {} catch {
            return;
        }
        ICurveBook.MarketState memory s = book.marketState(market);
        _checkRise(c.asks, true, exact >> 4, askCarry, (MODULUS - s.snapAsk) % MODULUS);
        _checkRise(c.bids, false, exact & 15, bidCarry, (MODULUS - s.snapBid) % MODULUS);
    }

    /* HELPERS */

    /// @dev A record that makes so much consumed where nothing was ever taken.
    function _named(uint256 exact, uint256 carry) private pure returns (uint96) {
        return _volume(exact, MODULUS - (carry % MODULUS));
    }

    function _expectConsumed(bytes32 id, uint256 asks, uint256 bids) private view {
        ICurveBook.MarketState memory s = book.marketState(id);
        unchecked {
            assertEq((s.cumAsk - s.snapAsk) % MODULUS, asks, "asks consumed");
            assertEq((s.cumBid - s.snapBid) % MODULUS, bids, "bids consumed");
        }
    }

    /// @dev Segments of any length, of which those of a partial post differ in the last one of each word.
    function _uneven(uint256 first, uint256 count, uint256[1] memory rng) private pure returns (uint256[] memory) {
        Curves.Segment[] memory s = new Curves.Segment[](count);
        for (uint256 i = 0; i < count; ++i) {
            s[i] = Curves.Segment(draw(rng, 1, 4095), draw(rng, 0, draw(rng, 0, 15)), i);
        }
        return Curves.pack(7, first, s);
    }

    /// @dev Half of the time about the end of a segment, else anywhere on the side, beyond it, or wrapped.
    function _carry(uint256 seed, uint256[] memory words, bool ask) private pure returns (uint256) {
        uint256[1] memory rng = [seed];
        (uint256[] memory lots, ) = Curves.unpack(words, ask);
        uint256 depth = Curves.depth(words, ask, LOT_UNITS);
        uint256 kind = draw(rng, 0, 7);
        if (kind == 0) return draw(rng, 0, 2);
        if (kind == 1) return depth + draw(rng, 0, 2);
        if (kind == 2) return draw(rng) % MODULUS;
        if (kind == 3 || lots.length == 0) return draw(rng, 0, depth);
        uint256 end = 0;
        for (uint256 i = draw(rng, 1, lots.length); i > 0; --i) {
            end += lots[i - 1] * LOT_UNITS;
        }
        return end + draw(rng, 0, end == 0 ? 1 : 2) - (end == 0 ? 0 : 1);
    }

    function _checkCarry(
        uint256[] memory asks,
        uint256[] memory bids,
        uint256 askCarry,
        uint256 bidCarry,
        uint256 exactAsks,
        uint256 exactBids,
        bool isPartial
    ) private {
        Curve memory c = _fresh(asks, bids);
        uint256[2] memory entered = [
            Curves.raised(asks, true, LOT_UNITS, exactAsks, askCarry),
            Curves.raised(bids, false, LOT_UNITS, exactBids, bidCarry)
        ];
        bytes memory record;
        if (isPartial) {
            // The live curve has other first words, the record brings those.
            _post(_fresh(_altered(asks), _altered(bids)));
            c.seq += 1;
        }
        ICurveBook.MarketState memory s = book.marketState(market);
        unchecked {
            (c.snapAsk, c.snapBid) = (_volume(exactAsks, s.cumAsk - askCarry), _volume(exactBids, s.cumBid - bidCarry));
            if (isPartial) record = _firstWords(c);
            else record = _fullRecord(market, c);
            (c.snapAsk, c.snapBid) = (_volume(0, s.cumAsk - entered[0]), _volume(0, s.cumBid - entered[1]));
        }
        bytes memory data = bytes.concat(_blockRef(), record);
        _expectPosted(c);
        vm.prank(CURVE_POSTER);
        book.post(data);
        _expectState(c);
        _expectConsumed(market, entered[0], entered[1]);
    }

    function _altered(uint256[] memory words) private pure returns (uint256[] memory other) {
        other = new uint256[](words.length);
        for (uint256 i = 0; i < words.length; ++i) {
            // The mantissa of the first knot.
            other[i] = i == 0 ? words[i] ^ (1 << 222) : words[i];
        }
    }

    function _firstWords(Curve memory c) private view returns (bytes memory) {
        uint256 count = (c.asks.length == 0 ? 0 : 1) + (c.bids.length == 0 ? 0 : 1);
        uint256[] memory words = new uint256[](count);
        if (c.asks.length != 0) words[0] = c.asks[0];
        if (c.bids.length != 0) words[count - 1] = c.bids[0];
        return _partialRecord(c, uint8((c.asks.length == 0 ? 0 : 16) + (c.bids.length == 0 ? 0 : 1)), words);
    }

    function _checkRise(uint256[] memory words, bool ask, uint256 exact, uint256 carry, uint256 entered) private pure {
        assertLe(carry, entered, "never less");
        // Behind what ends a side, where nothing is sold, any knot may count.
        if (carry <= Curves.depth(words, ask, LOT_UNITS)) {
            assertEq(entered, Curves.raised(words, ask, LOT_UNITS, exact, carry), "within the depth");
        }
    }

    function _bookLocation() private pure returns (uint256) {
        return uint256(keccak256(abi.encode(uint256(keccak256("curvebook.storage.CurveBook")) - 1))) & ~uint256(0xff);
    }
}
