// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../interfaces/ICurveBook.sol";

/// @title The packed form of posts.
/// @notice `blockNumber 6 bytes | first 12 bytes of its hash 12 |` and then records, one after the other:
///
/// | bytes | every record                                  |
/// |-------|-----------------------------------------------|
/// | 1     | kind: 1 full post, 2 touch                    |
/// | 32    | market                                        |
/// | 4     | seq                                           |
/// | 4     | deadline, seconds of chain time, exclusive    |
///
/// | bytes | body of a full post                                                         |
/// |-------|-----------------------------------------------------------------------------|
/// | 12    | snapAsk: cumulative base units taken from asks that the snapshot reflects   |
/// | 12    | snapBid                                                                     |
/// | 1     | number of words, 0 to 4 each: asks in the high nibble, bids in the low one  |
/// | 32 n  | ask words, then bid words; the first word of a side repeats its number      |
///
/// | bytes | body of a touch                               |
/// |-------|-----------------------------------------------|
/// | 4     | baseSeq: the curve that lives on              |
library PostCodec {
    uint256 internal constant KIND_FULL = 1;
    uint256 internal constant KIND_TOUCH = 2;
    uint256 internal constant MAX_WORDS = 4;

    uint256 internal constant BLOCK_REF_BYTES = 18;
    uint256 private constant HEAD_BYTES = 41;
    uint256 private constant TOUCH_BYTES = HEAD_BYTES + 4;
    uint256 private constant FULL_BYTES = HEAD_BYTES + 25;

    struct Record {
        uint256 kind;
        bytes32 market;
        uint256 seq;
        uint256 deadline;
        /// @dev Touch only.
        uint256 baseSeq;
        /// @dev Full post only, as is this all.
        uint256 snapAsk;
        uint256 snapBid;
        uint256 askCount;
        uint256 bidCount;
        /// @dev Offset of the first ask word in the data.
        uint256 wordsAt;
        /// @dev Offset of the next record.
        uint256 end;
    }

    /// @notice The block that the posted curves were computed from.
    function blockRef(bytes calldata data) internal pure returns (uint256 number, bytes12 hash) {
        if (data.length < BLOCK_REF_BYTES) revert ICurveBook.MalformedPost(0);
        uint256 head = word(data, 0);
        return (head >> 208, bytes12(bytes32(head << 48)));
    }

    /// @notice The record at `offset`. Reverts `MalformedPost(offset)` when it is cut short, of unknown kind, or names more words than a side
    /// has. What the words say is not looked at.
    function read(bytes calldata data, uint256 offset) internal pure returns (Record memory record) {
        unchecked {
            if (offset + TOUCH_BYTES > data.length) revert ICurveBook.MalformedPost(offset);
            record.kind = word(data, offset) >> 248;
            record.market = bytes32(word(data, offset + 1));
            uint256 tail = word(data, offset + 33);
            record.seq = tail >> 224;
            record.deadline = (tail >> 192) & type(uint32).max;
            if (record.kind == KIND_TOUCH) {
                record.baseSeq = (tail >> 160) & type(uint32).max;
                record.end = offset + TOUCH_BYTES;
                return record;
            }
            if (record.kind != KIND_FULL || offset + FULL_BYTES > data.length) revert ICurveBook.MalformedPost(offset);
            tail = word(data, offset + HEAD_BYTES);
            record.snapAsk = tail >> 160;
            record.snapBid = (tail >> 64) & type(uint96).max;
            record.askCount = (tail >> 60) & 0xf;
            record.bidCount = (tail >> 56) & 0xf;
            record.wordsAt = offset + FULL_BYTES;
            record.end = record.wordsAt + 32 * (record.askCount + record.bidCount);
            if (record.askCount > MAX_WORDS || record.bidCount > MAX_WORDS || record.end > data.length) {
                revert ICurveBook.MalformedPost(offset);
            }
        }
    }

    /// @notice 32 bytes at `offset`; bytes beyond the end of the data have no meaning.
    function word(bytes calldata data, uint256 offset) internal pure returns (uint256 value) {
        // Same as uint256(bytes32(data[offset:offset + 32])) without the bounds check.
        assembly ("memory-safe") {
            value := calldataload(add(data.offset, offset))
        }
    }
}
