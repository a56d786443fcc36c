// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {Curves} from "../support/Curves.sol";
import {Platform} from "../support/Platform.sol";

/// @notice Posts that send only the words that change.
contract CurveBookPartialPostsTest is Platform {
    uint256[] private _none;

    /// @dev From any number of knots to any other, by the changed words alone: the same curve as a full post of the second one.
    function testFuzz_LeavesTheCurveOfAFullPost(uint256 seed, uint96 snapAsk, uint96 snapBid, uint32 seq) external {
        uint256[1] memory rng = [seed];
        uint256[][2] memory sides = [_ladder(600_002, draw(rng, 0, 31)), _ladder(599_998, draw(rng, 0, 31))];
        // Longer words of an older curve lie behind.
        _post(_fresh(_ladder(600_002, 31), _ladder(599_998, 31)));
        _post(_fresh(sides[0], sides[1]));
        Curve memory c = _fresh(_changed(sides[0], 600_002, rng), _changed(sides[1], 599_998, rng));
        c.seq = uint32(bound(seq, 3, 2 + MAX_SEQ_STEP));
        (c.snapAsk, c.snapBid) = (snapAsk, snapBid);
        bytes memory data = bytes.concat(_blockRef(), _changes(sides, c));
        c = _asStored(c);
        _expectPosted(c);
        vm.prank(CURVE_POSTER);
        book.post(data);
        (uint256[] memory liveAsks, uint256[] memory liveBids) = book.curveWords(market);
        assertEq(Curves.hashOf(liveAsks, liveBids), Curves.hashOf(c.asks, c.bids), "words");
        assertEq(liveAsks.length, c.asks.length, "ask words");
        _expectState(c);
    }

    function _changes(uint256[][2] memory live, Curve memory c) private view returns (bytes memory) {
        (uint256 askMask, uint256[] memory asks) = _difference(live[0], c.asks);
        (uint256 bidMask, uint256[] memory bids) = _difference(live[1], c.bids);
        return _partialRecord(c, uint8(askMask * 16 + bidMask), _joined(asks, bids));
    }

    function test_VolumesAlone() external {
        _postDefault();
        _swap(true, 3000e6);
        uint256 cum = book.marketState(market).cumAsk;
        assertEq(_depth(true), 15 * 0.819e18 - cum, "consumed");
        Curve memory c = _fresh(_none, _none);
        _post(_partialRecord(c, 0, _none));
        assertEq(_depth(true), 15 * 0.819e18, "the snapshot reflects what was taken");
        assertEq(book.marketState(market).snapAsk, cum, "snapAsk");
    }

    function test_WhatWasTakenMeanwhileStaysTaken() external {
        _postDefault();
        Curve memory c = _fresh(_none, _none);
        _swap(true, 3000e6);
        uint256 depth = _depth(true);
        // The fill ends in the second segment, and so do the two on which the curve is the book.
        c.snapAsk = _volume(2, 0);
        _post(_partialRecord(c, 0, _none));
        assertEq(_depth(true), depth, "depth");
    }

    /* WORDS USED */

    function test_RevertWhen_AWordThatComesToLifeIsMissing() external {
        _post(_fresh(_ladder(600_002, 31), _ladder(599_998, 31)));
        _post(_fresh(_ladder(600_002, 7), _none));
        uint256[] memory longer = _ladder(600_003, 23);
        // The first word says three; of the other two one is missing, or both.
        _expectMalformed(0x10, _list(longer[0]));
        _expectMalformed(0x30, _list(longer[0], longer[1]));
        _expectMalformed(0x50, _list(longer[0], longer[2]));
        uint256[] memory bids = _ladder(599_997, 15);
        _expectMalformed(0x01, _list(bids[0]));
        _expectMalformed(0x02, _list(bids[1]));
        _post(_partialRecord(_fresh(_none, _none), 0x73, _joined(longer, bids)));
        assertEq(_depth(true), 23 * 0.819e18, "asks");
        assertEq(_depth(false), 15 * 0.819e18, "bids");
    }

    function test_RevertWhen_AWordLiesBeyondThoseUsed() external {
        _post(_fresh(_ladder(600_002, 15), _ladder(599_998, 15)));
        _expectMalformed(0x40, _list(1));
        _expectMalformed(0x80, _list(1));
        _expectMalformed(0x04, _list(1));
        _expectMalformed(0x08, _list(1));
        // A side that shrinks to one word can't change its second one.
        _expectMalformed(0x30, _list(_ladder(600_002, 7)[0], 1));
        _expectMalformed(0x30, _list(0, 1));
    }

    function test_RevertWhen_TheFirstWordCountsWrongly() external {
        _post(_fresh(_ladder(600_002, 31), _ladder(599_998, 31)));
        uint256 bare = _ladder(600_002, 7)[0] & ~(uint256(7) << 249);
        for (uint256 used = 5; used < 8; ++used) {
            _expectMalformed(0x10, _list(bare | (used << 249)));
            _expectMalformed(0x01, _list(bare | (used << 249)));
        }
        // Without words there is nothing to say but zero.
        _expectMalformed(0x10, _list(bare));
        _expectMalformed(0x10, _list(1));
    }

    function test_AZeroFirstWordEmptiesASide() external {
        _post(_fresh(_ladder(600_002, 31), _ladder(599_998, 31)));
        _post(_partialRecord(_fresh(_none, _none), 0x10, _list(0)));
        assertEq(_depth(true), 0, "asks");
        assertEq(_depth(false), 31 * 0.819e18, "bids");
        (uint256[] memory asks, ) = book.curveWords(market);
        assertEq(asks.length, 0, "no words");
        // Emptying what is empty does no harm.
        _post(_partialRecord(_fresh(_none, _none), 0x11, _list(0, 0)));
        assertEq(_depth(false), 0, "bids");
    }

    /* PRICES */

    function test_RevertWhen_TheNewSideCrossesTheOneThatStays() external {
        _postDefault();
        bytes memory crossed = _crossed(599_998 << 7, 599_998 << 7);
        uint256[] memory asks = _ladder(599_998, 15);
        _expectRevert(_partialRecord(_fresh(_none, _none), 0x30, asks), crossed);
        _expectRevert(_partialRecord(_fresh(_none, _none), 0x10, _list(asks[0])), crossed);
        crossed = _crossed(600_002 << 7, 600_002 << 7);
        _expectRevert(_partialRecord(_fresh(_none, _none), 0x03, _ladder(600_002, 15)), crossed);
        _post(_partialRecord(_fresh(_none, _none), 0x30, _ladder(599_999, 15)));
    }

    /// @dev The best price may be in a word that is exchanged while the first one stays.
    function test_RevertWhen_ALaterWordCrosses() external {
        Curves.Segment[] memory s = new Curves.Segment[](12);
        for (uint256 i = 0; i < 12; ++i) {
            s[i] = Curves.Segment(1, 0, 100);
        }
        _post(_fresh(Curves.pack(0, 1000, s), Curves.ladder(1005, 1, 1)));
        s[10].offset = 5;
        uint256 second = Curves.pack(0, 1000, s)[1];
        _expectRevert(_partialRecord(_fresh(_none, _none), 0x20, _list(second)), _crossed(1005, 1005));
        s[10].offset = 6;
        _post(_partialRecord(_fresh(_none, _none), 0x20, _list(Curves.pack(0, 1000, s)[1])));
    }

    /* WHICH CURVE */

    function test_RevertWhen_ItBuildsOnAnotherCurve() external {
        _postDefault();
        Curve memory c = _fresh(_none, _none);
        bytes memory onFirst = _partialRecord(c, 0x30, _ladder(600_004, 15));
        _post(_touchRecord(market, 2, c.deadline, 1));
        // Its seq is taken, then it is free but the curve that it names is not live.
        _expectRevert(onFirst, abi.encodeWithSelector(ICurveBook.StaleSeq.selector, market, 2, 2));
        _post(_fresh(_ladder(600_010, 3), _ladder(599_990, 3)));
        c.seq = 9;
        bytes memory onThird = _partialRecord(c, 0x10, _list(_ladder(600_004, 3)[0]));
        _post(_touchRecord(market, 4, c.deadline, 3));
        _expectRevert(onThird, abi.encodeWithSelector(ICurveBook.StaleSeq.selector, market, 9, 4));
        bytes memory data = bytes.concat(_blockRef(), onThird);
        vm.expectEmit(address(book));
        emit ICurveBook.PostSkipped(market, 9, 4);
        vm.prank(CURVE_POSTER);
        assertEq(book.postBatch(data), 0, "applied");
        assertEq(_depth(true), 3 * 0.819e18, "nothing changed");
        assertEq(book.marketState(market).seq, 4, "seq");
    }

    function test_RevertWhen_TheCurveIsDead() external {
        bytes4 expired = ICurveBook.CurveExpired.selector;
        Curve memory c = _fresh(_none, _none);
        _expectRevert(_partialRecord(c, 0, _none), abi.encodeWithSelector(expired, market, 0));
        _postDefault();
        uint256 deadline = START + MAX_TTL_SEC;
        c = _fresh(_none, _none);
        c.deadline = uint32(deadline + 5);
        vm.warp(deadline);
        bytes memory late = _partialRecord(c, 0, _none);
        _expectRevert(late, abi.encodeWithSelector(expired, market, deadline));
        vm.warp(deadline - 1);
        _post(late);
    }

    function test_RevertWhen_DeadlineIsOutOfRange() external {
        _postDefault();
        Curve memory c = _fresh(_none, _none);
        uint256[2] memory bad = [block.timestamp, block.timestamp + MAX_TTL_SEC + 1];
        for (uint256 i = 0; i < bad.length; ++i) {
            c.deadline = uint32(bad[i]);
            bytes memory expected = abi.encodeWithSelector(
                ICurveBook.DeadlineOutOfRange.selector,
                market,
                bad[i],
                block.timestamp + 1,
                block.timestamp + MAX_TTL_SEC
            );
            _expectRevert(_partialRecord(c, 0, _none), expected);
        }
    }

    function test_ABatchMixesKinds() external {
        _postDefault();
        Curve memory c = _fresh(_none, _none);
        bytes memory data = bytes.concat(
            _blockRef(),
            _partialRecord(c, 0x30, _ladder(600_004, 15)),
            _touchRecord(market, 3, c.deadline - 1, 2),
            _touchRecord(market, 4, c.deadline - 1, 2)
        );
        vm.prank(CURVE_POSTER);
        assertEq(book.postBatch(data), 3, "applied");
        assertEq(book.marketState(market).seq, 3, "seq");
    }

    /* HELPERS */

    function _changed(
        uint256[] memory side,
        uint256 first,
        uint256[1] memory rng
    ) private pure returns (uint256[] memory next) {
        if (draw(rng, 0, 1) == 0) return _ladder(first, draw(rng, 0, 31));
        next = new uint256[](side.length);
        for (uint256 i = 0; i < side.length; ++i) {
            // The last knot but one of the word, made a little shorter.
            next[i] = draw(rng, 0, 1) == 0 || side[i] >> 32 == 0 ? side[i] : side[i] ^ (1 << 52);
        }
    }

    function _difference(
        uint256[] memory before,
        uint256[] memory next
    ) private pure returns (uint256 mask, uint256[] memory words) {
        if (next.length == 0) return before.length == 0 ? (0, words) : (1, new uint256[](1));
        uint256 count = 0;
        words = new uint256[](next.length);
        for (uint256 i = 0; i < next.length; ++i) {
            if (i < before.length && before[i] == next[i]) continue;
            mask |= 1 << i;
            words[count++] = next[i];
        }
        assembly ("memory-safe") {
            mstore(words, count)
        }
    }

    function _list(uint256 a) private pure returns (uint256[] memory words) {
        words = new uint256[](1);
        words[0] = a;
    }

    function _list(uint256 a, uint256 b) private pure returns (uint256[] memory) {
        return _joined(_list(a), _list(b));
    }

    function _joined(uint256[] memory a, uint256[] memory b) private pure returns (uint256[] memory words) {
        words = new uint256[](a.length + b.length);
        for (uint256 i = 0; i < words.length; ++i) {
            words[i] = i < a.length ? a[i] : b[i - a.length];
        }
    }

    /// @dev The error names where the words of the side begin: 18 bytes of block reference and 70 of record.
    function _expectMalformed(uint8 masks, uint256[] memory words) private {
        _expectRevert(
            _partialRecord(_fresh(_none, _none), masks, words),
            abi.encodeWithSelector(ICurveBook.MalformedPost.selector, 18 + 70)
        );
    }

    function _expectRevert(bytes memory record, bytes memory expected) private {
        bytes memory data = bytes.concat(_blockRef(), record);
        vm.prank(CURVE_POSTER);
        vm.expectRevert(expected);
        book.post(data);
    }
}
