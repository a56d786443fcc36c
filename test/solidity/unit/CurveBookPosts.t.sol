// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {Curves} from "../support/Curves.sol";
import {Platform} from "../support/Platform.sol";

/// @notice Full posts, touches and batches.
contract CurveBookPostsTest is Platform {
    /* FULL POSTS */

    function testFuzz_PostStoresWhatItSays(
        uint256 seed,
        uint96 snapAsk,
        uint96 snapBid,
        uint32 seq,
        uint256 ttl
    ) external {
        uint256[1] memory rng = [seed];
        Curve memory c;
        // A side of its own price range each, so that they never cross.
        c.asks = _ladder(600_000 + draw(rng, 0, 9), draw(rng, 0, 31));
        c.bids = _ladder(599_999 - draw(rng, 0, 9), draw(rng, 0, 31));
        (c.snapAsk, c.snapBid) = (snapAsk, snapBid);
        c.seq = uint32(bound(seq, 1, MAX_SEQ_STEP));
        c.deadline = uint32(block.timestamp + bound(ttl, 1, MAX_TTL_SEC));
        bytes memory data = bytes.concat(_blockRef(), _fullRecord(market, c));
        c = _asStored(c);
        _expectPosted(c);
        vm.prank(CURVE_POSTER);
        book.post(data);
        _expectState(c);
        ICurveBook.MarketState memory s = book.marketState(market);
        assertEq(s.cumAsk + s.cumBid + s.fillSeq, 0, "counters");
        (uint256[] memory asks, uint256[] memory bids) = book.curveWords(market);
        assertEq(Curves.hashOf(asks, bids), Curves.hashOf(c.asks, c.bids), "words");
        assertEq(asks.length, c.asks.length, "ask words");
        assertEq(bids.length, c.bids.length, "bid words");
    }

    /// @dev The words of a longer curve stay in storage behind a shorter one and must never be sold.
    function test_DepthIsAlwaysWhatWasPostedLast() external {
        uint256[6] memory counts = [uint256(31), 15, 7, 6, 1, 0];
        for (uint256 i = 0; i < counts.length; ++i) {
            _checkDepths(counts[i], counts[counts.length - 1 - i]);
        }
        for (uint256 i = 0; i < counts.length; ++i) {
            _checkDepths(counts[counts.length - 1 - i], counts[i]);
        }
    }

    function _checkDepths(uint256 askCount, uint256 bidCount) private {
        _post(_fresh(_ladder(600_002, askCount), _ladder(599_998, bidCount)));
        assertEq(_depth(true), askCount * 8190 * LOT_UNITS, "asks");
        assertEq(_depth(false), bidCount * 8190 * LOT_UNITS, "bids");
    }

    function test_RevertWhen_WordsUsedDiffersFromTheWordsSent() external {
        uint256[] memory asks = _ladder(600_002, 15);
        for (uint256 used = 0; used < 8; ++used) {
            if (used == 2) continue;
            Curve memory c = _fresh(asks, new uint256[](0));
            c.asks = _ladder(600_002, 15);
            c.asks[0] = (c.asks[0] & ~(uint256(7) << 249)) | (used << 249);
            // The words start 84 bytes into the data: 18 of block reference, 66 of record.
            _expectRevert(_fullRecord(market, c), abi.encodeWithSelector(ICurveBook.MalformedPost.selector, 84));
            (c.asks, c.bids) = (new uint256[](0), c.asks);
            _expectRevert(_fullRecord(market, c), abi.encodeWithSelector(ICurveBook.MalformedPost.selector, 84));
        }
        // A zero word is not the form of an empty side: none is.
        Curve memory empty = _fresh(new uint256[](1), new uint256[](0));
        _expectRevert(_fullRecord(market, empty), abi.encodeWithSelector(ICurveBook.MalformedPost.selector, 84));
    }

    function test_RevertWhen_BytesFollowTheRecord() external {
        bytes memory record = _fullRecord(market, _fresh(_ladder(600_002, 1), _ladder(599_998, 1)));
        bytes4 malformed = ICurveBook.MalformedPost.selector;
        _expectRevert(bytes.concat(record, hex"00"), abi.encodeWithSelector(malformed, 18 + record.length));
        _expectRevert(bytes.concat(record, record), abi.encodeWithSelector(malformed, 18 + record.length));
        _expectRevert("", abi.encodeWithSelector(malformed, 18));
    }

    function test_RevertWhen_CallerIsNotAPoster() external {
        bytes memory data = bytes.concat(
            _blockRef(),
            _fullRecord(market, _fresh(_ladder(600_002, 1), new uint256[](0)))
        );
        address[3] memory callers = [OWNER, CLAIM_POSTER, STRANGER];
        for (uint256 i = 0; i < callers.length; ++i) {
            vm.startPrank(callers[i]);
            vm.expectRevert(abi.encodeWithSelector(ICurveBook.NotPoster.selector, callers[i]));
            book.post(data);
            vm.expectRevert(abi.encodeWithSelector(ICurveBook.NotPoster.selector, callers[i]));
            book.postBatch(data);
            vm.stopPrank();
        }
    }

    function test_RevertWhen_MarketIsUnknown() external {
        Curve memory c = _fresh(_ladder(600_002, 1), new uint256[](0));
        bytes32 id = bytes32(uint256(1));
        _expectRevert(_fullRecord(id, c), abi.encodeWithSelector(ICurveBook.UnknownMarket.selector, id));
        bytes memory touch = _touchRecord(id, 1, c.deadline, 0);
        _expectRevert(touch, abi.encodeWithSelector(ICurveBook.UnknownMarket.selector, id));
    }

    function testFuzz_RevertWhen_SeqDoesNotRise(uint32 live, uint32 next) external {
        live = uint32(bound(live, 1, MAX_SEQ_STEP));
        next = uint32(bound(next, 0, live));
        Curve memory c = _fresh(_ladder(600_002, 1), new uint256[](0));
        c.seq = live;
        _post(c);
        c.seq = next;
        _expectRevert(_fullRecord(market, c), abi.encodeWithSelector(ICurveBook.StaleSeq.selector, market, next, live));
    }

    /// @dev Else one post would use up the sequence numbers of a market.
    function test_RevertWhen_SeqRisesTooFar() external {
        Curve memory c = _fresh(_ladder(600_002, 1), new uint256[](0));
        for (uint256 live = 0; live <= MAX_SEQ_STEP; live += MAX_SEQ_STEP) {
            uint256 highest = live + MAX_SEQ_STEP;
            uint256[2] memory far = [highest + 1, type(uint32).max];
            for (uint256 i = 0; i < far.length; ++i) {
                c.seq = uint32(far[i]);
                bytes memory expected = abi.encodeWithSelector(
                    ICurveBook.SeqOutOfRange.selector,
                    market,
                    far[i],
                    live + 1,
                    highest
                );
                _expectRevert(_fullRecord(market, c), expected);
                _expectRevert(_touchRecord(market, c.seq, c.deadline, uint32(live)), expected);
                bytes memory batch = bytes.concat(_blockRef(), _fullRecord(market, c));
                vm.prank(CURVE_POSTER);
                vm.expectRevert(expected);
                book.postBatch(batch);
            }
            c.seq = uint32(highest);
            _post(c);
        }
    }

    function test_RevertWhen_DeadlineIsOutOfRange() external {
        Curve memory c = _fresh(_ladder(600_002, 1), new uint256[](0));
        uint256[4] memory bad = [uint256(0), block.timestamp, block.timestamp + MAX_TTL_SEC + 1, type(uint32).max];
        for (uint256 i = 0; i < bad.length; ++i) {
            c.deadline = uint32(bad[i]);
            bytes memory expected = abi.encodeWithSelector(
                ICurveBook.DeadlineOutOfRange.selector,
                market,
                bad[i],
                block.timestamp + 1,
                block.timestamp + MAX_TTL_SEC
            );
            _expectRevert(_fullRecord(market, c), expected);
        }
        c.deadline = uint32(block.timestamp + 1);
        _post(c);
        c.seq++;
        c.deadline = uint32(block.timestamp + MAX_TTL_SEC);
        _post(c);
    }

    /* CROSSED CURVES */

    function test_RevertWhen_BestBidReachesBestAsk() external {
        bytes memory equal = _crossed(600_000 << 7, 600_000 << 7);
        _expectRevert(_fullRecord(market, _fresh(_ladder(600_000, 2), _ladder(600_000, 2))), equal);
        bytes memory above = _crossed(600_000 << 7, 600_001 << 7);
        _expectRevert(_fullRecord(market, _fresh(_ladder(600_000, 2), _ladder(600_001, 2))), above);
        _post(_fresh(_ladder(600_000, 2), _ladder(599_999, 2)));
    }

    function test_OneEmptySideNeverCrosses() external {
        _post(_fresh(_ladder(600_000, 2), new uint256[](0)));
        _post(_fresh(new uint256[](0), _ladder(700_000, 2)));
        _post(_fresh(new uint256[](0), new uint256[](0)));
        assertEq(book.marketState(market).seq, 3, "all three landed");
    }

    /// @dev A quantum of 128 subticks against one of 1; the prices decide, not the bases.
    function test_CrossingIsJudgedInSubticks() external {
        uint256[] memory bids = Curves.ladder(1279, 1, 5);
        _post(_fresh(Curves.pack(7, 10, _one(0)), bids));
        Curve memory c = _fresh(Curves.pack(7, 10, _one(0)), Curves.ladder(1280, 1, 5));
        _expectRevert(_fullRecord(market, c), _crossed(1280, 1280));
    }

    /// @dev Bases may overlap as long as the knots don't.
    function test_BasesMayOverlap() external {
        _post(_fresh(Curves.pack(0, 1000, _one(10)), Curves.pack(0, 1009, _one(0))));
        _post(_fresh(Curves.pack(0, 1000, _one(10)), Curves.pack(0, 1012, _one(3))));
        Curve memory c = _fresh(Curves.pack(0, 1000, _one(10)), Curves.pack(0, 1010, _one(0)));
        _expectRevert(_fullRecord(market, c), _crossed(1010, 1010));
    }

    /// @dev Whatever the order of the knots: the cheapest ask of all must be above the dearest bid of all.
    function test_RevertWhen_ALaterKnotCrosses() external {
        Curves.Segment[] memory s = new Curves.Segment[](12);
        for (uint256 i = 0; i < 12; ++i) {
            s[i] = Curves.Segment(1, 0, 100);
        }
        s[10].offset = 5;
        Curve memory c = _fresh(Curves.pack(0, 1000, s), Curves.pack(0, 1005, _one(0)));
        _expectRevert(_fullRecord(market, c), _crossed(1005, 1005));
        _post(_fresh(Curves.pack(0, 1000, s), Curves.pack(0, 1004, _one(0))));
    }

    /* BLOCK REFERENCE */

    function test_RevertWhen_BlockWasOrphaned() external {
        bytes memory record = _fullRecord(market, _fresh(_ladder(600_002, 1), new uint256[](0)));
        bytes12 actual = bytes12(blockhash(999));
        bytes12 other = bytes12(uint96(actual) ^ 1);
        bytes memory orphaned = abi.encodeWithSelector(ICurveBook.OrphanedBlock.selector, 999, other, actual);
        _expectRevertRaw(abi.encodePacked(uint48(999), other, record), orphaned);
    }

    function test_PostLandsWhileItsBlockCanBeLookedUp() external {
        bytes memory ref = _blockRef();
        bytes memory record = _fullRecord(market, _fresh(_ladder(600_002, 1), new uint256[](0)));
        vm.roll(block.number + 255);
        vm.prank(CURVE_POSTER);
        book.post(bytes.concat(ref, record));
    }

    function test_RevertWhen_BlockIsOutOfSight() external {
        bytes memory record = _fullRecord(market, _fresh(_ladder(600_002, 1), new uint256[](0)));
        bytes12 known = bytes12(blockhash(999));
        // Neither the present block nor one to come nor one too old has a hash, and zero agrees with none of them.
        uint48[3] memory numbers = [uint48(1000), 1001, 700];
        for (uint256 i = 0; i < numbers.length; ++i) {
            bytes memory orphaned = abi.encodeWithSelector(
                ICurveBook.OrphanedBlock.selector,
                numbers[i],
                bytes12(0),
                bytes12(0)
            );
            _expectRevertRaw(abi.encodePacked(numbers[i], bytes12(0), record), orphaned);
        }
        vm.roll(1256);
        bytes memory tooOld = abi.encodeWithSelector(ICurveBook.OrphanedBlock.selector, 999, known, bytes12(0));
        _expectRevertRaw(abi.encodePacked(uint48(999), known, record), tooOld);
    }

    /* TOUCHES */

    function test_TouchMovesOnlySeqAndDeadline() external {
        _postDefault();
        _swap(true, 3000e6);
        ICurveBook.MarketState memory before = book.marketState(market);
        vm.warp(START + 30);
        uint32 deadline = uint32(START + 42);
        bytes memory data = bytes.concat(_blockRef(), _touchRecord(market, 9, deadline, 1));
        vm.expectEmit(address(book));
        emit ICurveBook.CurveTouched(market, 9, 1, deadline);
        vm.prank(CURVE_POSTER);
        book.post(data);
        ICurveBook.MarketState memory s = book.marketState(market);
        (before.seq, before.deadline) = (9, deadline);
        assertEq(keccak256(abi.encode(s)), keccak256(abi.encode(before)), "state");
        (uint256[] memory asks, ) = book.curveWords(market);
        assertEq(Curves.hashOf(asks, asks), Curves.hashOf(_ladder(600_002, 15), _ladder(600_002, 15)), "words");
    }

    function test_TouchMayShortenTheDeadline() external {
        _postDefault();
        _post(_touchRecord(market, 2, uint32(block.timestamp + 1), 1));
        assertEq(book.marketState(market).deadline, block.timestamp + 1, "deadline");
    }

    function test_RevertWhen_TouchNamesAnotherCurve() external {
        _postDefault();
        _post(_touchRecord(market, 2, uint32(block.timestamp + 9), 1));
        uint32 deadline = uint32(block.timestamp + 10);
        bytes4 stale = ICurveBook.StaleSeq.selector;
        _expectRevert(_touchRecord(market, 3, deadline, 1), abi.encodeWithSelector(stale, market, 3, 2));
        _expectRevert(_touchRecord(market, 3, deadline, 3), abi.encodeWithSelector(stale, market, 3, 2));
        _expectRevert(_touchRecord(market, 2, deadline, 2), abi.encodeWithSelector(stale, market, 2, 2));
    }

    function test_RevertWhen_TouchingADeadCurve() external {
        bytes4 expired = ICurveBook.CurveExpired.selector;
        uint256 deadline = START + MAX_TTL_SEC;
        bytes memory early = _touchRecord(market, 1, uint32(START + 5), 0);
        _expectRevert(early, abi.encodeWithSelector(expired, market, 0));
        _postDefault();
        vm.warp(deadline);
        bytes memory late = _touchRecord(market, 2, uint32(deadline + 5), 1);
        _expectRevert(late, abi.encodeWithSelector(expired, market, deadline));
        vm.warp(deadline - 1);
        _post(late);
    }

    function test_RevertWhen_TouchDeadlineIsOutOfRange() external {
        _postDefault();
        uint256[2] memory bad = [block.timestamp, block.timestamp + MAX_TTL_SEC + 1];
        for (uint256 i = 0; i < bad.length; ++i) {
            bytes memory expected = abi.encodeWithSelector(
                ICurveBook.DeadlineOutOfRange.selector,
                market,
                bad[i],
                block.timestamp + 1,
                block.timestamp + MAX_TTL_SEC
            );
            _expectRevert(_touchRecord(market, 2, uint32(bad[i]), 1), expected);
        }
    }

    /* BATCHES */

    function test_BatchAppliesWhatIsFreshAndReportsTheRest() external {
        bytes32 other = _listOther();
        _postDefault();
        Curve memory c = _fresh(_ladder(600_004, 3), _ladder(599_990, 3));
        Curve memory stale = _fresh(_ladder(600_004, 3), _ladder(599_990, 3));
        stale.seq = 1;
        Curve memory first = _fresh(_ladder(600_004, 1), new uint256[](0));
        first.seq = 1;
        bytes memory data = bytes.concat(
            _blockRef(),
            _fullRecord(market, stale),
            _fullRecord(other, first),
            _fullRecord(market, c),
            _touchRecord(market, 3, c.deadline, 1),
            _touchRecord(other, 2, c.deadline - 1, 1)
        );
        vm.expectEmit(address(book));
        emit ICurveBook.PostSkipped(market, 1, 1);
        vm.expectEmit(address(book));
        emit ICurveBook.CurvePosted(other, 1, first.deadline, 0, 0, Curves.hashOf(first.asks, first.bids));
        vm.expectEmit(address(book));
        emit ICurveBook.CurvePosted(market, 2, c.deadline, 0, 0, Curves.hashOf(c.asks, c.bids));
        vm.expectEmit(address(book));
        emit ICurveBook.PostSkipped(market, 3, 2);
        vm.expectEmit(address(book));
        emit ICurveBook.CurveTouched(other, 2, 1, c.deadline - 1);
        vm.prank(CURVE_POSTER);
        assertEq(book.postBatch(data), (1 << 1) | (1 << 2) | (1 << 4), "applied");
        assertEq(book.marketState(market).seq, 2, "seq");
        assertEq(book.marketState(other).seq, 2, "other seq");
    }

    /// @dev What came too late for one market says nothing against the others: a touch or a partial post of a curve that died, and any record
    /// whose own deadline has passed.
    function test_BatchLeavesOutWhatExpired() external {
        bytes32 other = _listOther();
        _postDefault();
        uint256[] memory none = new uint256[](0);
        Curve memory c = _fresh(none, none);
        vm.warp(START + MAX_TTL_SEC);
        Curve memory good = _fresh(_ladder(600_004, 1), none);
        good.seq = 1;
        uint32 deadline = good.deadline;
        c.deadline = deadline;
        bytes[4] memory late = [
            _touchRecord(market, 2, deadline, 1),
            _partialRecord(c, 0, none),
            _touchRecord(market, 2, uint32(START + MAX_TTL_SEC), 1),
            ""
        ];
        c.deadline = uint32(START + MAX_TTL_SEC);
        late[3] = _fullRecord(market, c);
        for (uint256 i = 0; i < late.length; ++i) {
            bytes memory data = bytes.concat(_blockRef(), late[i], _fullRecord(other, good));
            vm.expectEmit(address(book));
            emit ICurveBook.PostSkipped(market, 2, 1);
            vm.prank(CURVE_POSTER);
            assertEq(book.postBatch(data), 2, "applied");
            good.seq += 1;
        }
        assertEq(book.marketState(market).seq, 1, "seq");
        assertEq(book.marketState(other).seq, 4, "other seq");
        // A deadline that lies too far ahead is a mistake, and stops the batch.
        c.deadline = deadline + 1;
        bytes memory bad = bytes.concat(_blockRef(), _fullRecord(market, c), _fullRecord(other, good));
        vm.prank(CURVE_POSTER);
        vm.expectRevert(
            abi.encodeWithSelector(
                ICurveBook.DeadlineOutOfRange.selector,
                market,
                c.deadline,
                block.timestamp + 1,
                deadline
            )
        );
        book.postBatch(bad);
    }

    function test_RevertWhen_ARecordOfABatchIsBad() external {
        Curve memory c = _fresh(_ladder(600_004, 3), _ladder(599_990, 3));
        bytes memory good = _fullRecord(market, c);
        c.seq = 2;
        c.bids = _ladder(600_004, 3);
        vm.startPrank(CURVE_POSTER);
        bytes memory batch = bytes.concat(_blockRef(), good, _fullRecord(market, c));
        vm.expectRevert(_crossed(600_004 << 7, 600_004 << 7));
        book.postBatch(batch);
        batch = bytes.concat(_blockRef(), good, hex"01");
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.MalformedPost.selector, 18 + good.length));
        book.postBatch(batch);
        batch = abi.encodePacked(uint48(block.number - 1), bytes12(uint96(1)), good);
        vm.expectRevert(
            abi.encodeWithSelector(
                ICurveBook.OrphanedBlock.selector,
                block.number - 1,
                bytes12(uint96(1)),
                bytes12(blockhash(999))
            )
        );
        book.postBatch(batch);
    }

    function test_BatchHoldsAtMost256Records() external {
        bytes memory data = _blockRef();
        for (uint256 i = 0; i < 256; ++i) {
            data = bytes.concat(data, _touchRecord(market, 0, 0, 0));
        }
        vm.startPrank(CURVE_POSTER);
        assertEq(book.postBatch(data), 0, "all stale");
        uint256 full = data.length;
        data = bytes.concat(data, _touchRecord(market, 0, 0, 0));
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.MalformedPost.selector, full));
        book.postBatch(data);
    }

    function test_BatchOfNothing() external {
        bytes memory data = _blockRef();
        vm.prank(CURVE_POSTER);
        assertEq(book.postBatch(data), 0, "applied");
    }

    /* HELPERS */

    function _one(uint256 offset) private pure returns (Curves.Segment[] memory s) {
        s = new Curves.Segment[](1);
        s[0] = Curves.Segment(5, 0, offset);
    }

    function _listOther() private returns (bytes32) {
        address third = address(_newToken("Other", 18));
        vm.prank(OWNER);
        return book.listMarket(third, address(quote), 14, 1, 0, MAX_TTL_SEC);
    }

    function _expectRevert(bytes memory record, bytes memory expected) private {
        _expectRevertRaw(bytes.concat(_blockRef(), record), expected);
    }

    function _expectRevertRaw(bytes memory data, bytes memory expected) private {
        vm.prank(CURVE_POSTER);
        vm.expectRevert(expected);
        book.post(data);
    }
}
