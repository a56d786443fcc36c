// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {PostCodec, PostRecord} from "../../../contracts/libraries/PostCodec.sol";
import {Test} from "../support/Test.sol";

contract PostCodecTest is Test {
    using PostCodec for bytes;

    /// @dev All fields of a record, those that its kind has not as zero. Positions of words are offsets in the data.
    struct Record {
        uint256 kind;
        bytes32 market;
        uint256 seq;
        uint256 deadline;
        uint256 baseSeq;
        uint256 snapAsk;
        uint256 snapBid;
        uint256 askWords;
        uint256 bidWords;
        uint256 asksAt;
        uint256 bidsAt;
        uint256 end;
    }

    function readAt(bytes calldata data, uint256 offset) external pure returns (Record memory r) {
        PostRecord record;
        (record, r.end) = data.read(offset);
        (r.kind, r.market, r.seq, r.deadline) = (record.kind(), record.market(), record.seq(), record.deadline());
        if (r.kind != PostCodec.KIND_FULL) r.baseSeq = record.baseSeq();
        if (r.kind == PostCodec.KIND_TOUCH) return r;
        uint256 curveAt = record.curve(r.kind);
        (r.snapAsk, r.snapBid) = PostCodec.volumes(curveAt);
        (r.askWords, r.bidWords) = PostCodec.nibbles(curveAt);
        uint256 start;
        assembly ("memory-safe") {
            start := data.offset
        }
        r.asksAt = PostCodec.words(curveAt) - start;
        r.bidsAt = r.asksAt + 32 * (r.kind == PostCodec.KIND_FULL ? r.askWords : PostCodec.ones(r.askWords));
    }

    function blockRefOf(bytes calldata data) external pure returns (uint256, bytes12) {
        (uint256 number, uint256 hash) = data.blockRef();
        return (number, bytes12(uint96(hash)));
    }

    function wordOf(bytes calldata data, uint256 offset) external pure returns (uint256) {
        return uint256(bytes32(data[offset:]));
    }

    function testFuzz_BlockRef(uint48 number, bytes12 hash, bytes calldata rest) external view {
        (uint256 n, bytes12 h) = this.blockRefOf(bytes.concat(abi.encodePacked(number, hash), rest));
        assertEq(n, number, "number");
        assertEq(bytes32(h), bytes32(hash), "hash");
    }

    function testFuzz_FullPost(
        bytes32 market,
        uint32 seq,
        uint32 deadline,
        uint96 snapAsk,
        uint96 snapBid,
        uint8 counts,
        uint8 pad
    ) external view {
        uint256 asks = (counts >> 4) % 5;
        uint256 bids = counts % 5;
        bytes memory words = new bytes(32 * (asks + bids));
        for (uint256 i = 0; i < words.length; ++i) {
            words[i] = bytes1(uint8(i + 1));
        }
        bytes memory record = abi.encodePacked(
            uint8(1),
            market,
            seq,
            deadline,
            snapAsk,
            snapBid,
            uint8(asks * 16 + bids),
            words
        );
        bytes memory data = bytes.concat(new bytes(pad), record, hex"ff");
        Record memory r = this.readAt(data, pad);
        assertEq(r.kind, 1, "kind");
        assertEq(r.market, market, "market");
        assertEq(r.seq, seq, "seq");
        assertEq(r.deadline, deadline, "deadline");
        assertEq(r.snapAsk, snapAsk, "snapAsk");
        assertEq(r.snapBid, snapBid, "snapBid");
        assertEq(PostCodec.exactKnots(r.snapAsk), snapAsk >> 92, "exactAskKnots");
        assertEq(r.askWords, asks, "askWords");
        assertEq(r.bidWords, bids, "bidWords");
        assertEq(r.end, pad + record.length, "end");
        if (words.length != 0) {
            assertEq(this.wordOf(data, r.asksAt) >> 240, 0x0102, "first word");
        }
        assertEq(r.bidsAt, r.asksAt + 32 * asks, "bidsAt");
    }

    function testFuzz_PartialPost(
        uint32 seq,
        uint32 baseSeq,
        uint96 snapAsk,
        uint96 snapBid,
        uint8 masks,
        uint8 pad
    ) external view {
        bytes memory words = new bytes(32 * (_ones(masks >> 4) + _ones(masks & 15)));
        bytes memory record = abi.encodePacked(
            uint8(3),
            bytes32(uint256(7)),
            seq,
            uint32(9),
            baseSeq,
            snapAsk,
            snapBid,
            masks,
            words
        );
        Record memory r = this.readAt(bytes.concat(new bytes(pad), record, hex"ff"), pad);
        assertEq(r.kind, 3, "kind");
        assertEq(r.market, bytes32(uint256(7)), "market");
        assertEq(r.seq, seq, "seq");
        assertEq(r.deadline, 9, "deadline");
        assertEq(r.baseSeq, baseSeq, "baseSeq");
        assertEq(r.snapAsk, snapAsk, "snapAsk");
        assertEq(r.snapBid, snapBid, "snapBid");
        assertEq(r.askWords, masks >> 4, "askWords");
        assertEq(r.bidWords, masks & 15, "bidWords");
        assertEq(r.asksAt, uint256(pad) + 70, "asksAt");
        assertEq(r.bidsAt, uint256(pad) + 70 + 32 * _ones(masks >> 4), "bidsAt");
        assertEq(r.end, pad + record.length, "end");
    }

    function _ones(uint256 mask) private pure returns (uint256 count) {
        for (; mask != 0; mask >>= 1) {
            count += mask & 1;
        }
    }

    function testFuzz_Touch(bytes32 market, uint32 seq, uint32 deadline, uint32 baseSeq, uint8 pad) external view {
        bytes memory record = abi.encodePacked(uint8(2), market, seq, deadline, baseSeq);
        Record memory r = this.readAt(bytes.concat(new bytes(pad), record), pad);
        assertEq(r.kind, 2, "kind");
        assertEq(r.market, market, "market");
        assertEq(r.seq, seq, "seq");
        assertEq(r.deadline, deadline, "deadline");
        assertEq(r.baseSeq, baseSeq, "baseSeq");
        assertEq(r.end, pad + record.length, "end");
    }

    function testFuzz_RevertWhen_CutShort(uint256 length, uint8 counts) external {
        uint256 words = ((counts >> 4) % 5) + (counts % 5);
        bytes memory full = abi.encodePacked(
            uint8(1),
            bytes32(uint256(1)),
            uint32(1),
            uint32(1),
            uint96(0),
            uint96(0),
            uint8(((counts >> 4) % 5) * 16 + (counts % 5)),
            new bytes(32 * words)
        );
        this.readAt(full, 0);
        _expectMalformed(_cut(full, bound(length, 0, full.length - 1)), 0);
        bytes memory touch = abi.encodePacked(uint8(2), bytes32(uint256(1)), uint32(2), uint32(1), uint32(1));
        this.readAt(touch, 0);
        _expectMalformed(_cut(touch, bound(length, 0, touch.length - 1)), 0);
        bytes memory partialPost = abi.encodePacked(
            uint8(3),
            bytes32(uint256(1)),
            uint32(2),
            uint32(1),
            uint32(1),
            uint96(0),
            uint96(0),
            counts,
            new bytes(32 * (_ones(counts >> 4) + _ones(counts & 15)))
        );
        this.readAt(partialPost, 0);
        _expectMalformed(_cut(partialPost, bound(length, 0, partialPost.length - 1)), 0);
    }

    function testFuzz_RevertWhen_KindUnknown(uint8 kind) external {
        vm.assume(kind == 0 || kind > 3);
        _expectMalformed(bytes.concat(bytes3(0), bytes1(kind), new bytes(400)), 3);
    }

    function test_RevertWhen_MoreThanFourWordsOnASide() external {
        bytes memory head = abi.encodePacked(uint8(1), bytes32(0), uint32(1), uint32(1), uint96(0), uint96(0));
        _expectMalformed(bytes.concat(head, hex"50", new bytes(400)), 0);
        _expectMalformed(bytes.concat(head, hex"05", new bytes(400)), 0);
        this.readAt(bytes.concat(head, hex"44", new bytes(400)), 0);
    }

    function test_RevertWhen_BlockRefCutShort() external {
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.MalformedPost.selector, 0));
        this.blockRefOf(new bytes(17));
    }

    function _expectMalformed(bytes memory data, uint256 offset) private {
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.MalformedPost.selector, offset));
        this.readAt(data, offset);
    }

    function _cut(bytes memory data, uint256 length) private pure returns (bytes memory part) {
        part = new bytes(length);
        for (uint256 i = 0; i < length; ++i) {
            part[i] = data[i];
        }
    }
}
