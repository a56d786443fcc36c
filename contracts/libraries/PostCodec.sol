// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../interfaces/ICurveBook.sol";

/// @title The packed form of posts.
/// @notice `blockNumber 6 bytes | first 12 bytes of its hash 12 |` and then records, one after the other:
///
/// | bytes | every record                                  |
/// |-------|-----------------------------------------------|
/// | 1     | kind: 1 full post, 2 touch, 3 partial post    |
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
///
/// | bytes | body of a partial post                                                              |
/// |-------|-------------------------------------------------------------------------------------|
/// | 4     | baseSeq: the curve whose other words stay                                           |
/// | 12    | snapAsk, as in a full post                                                          |
/// | 12    | snapBid                                                                             |
/// | 1     | which words follow: bit i of the high nibble is ask word i, of the low one bid word i |
/// | 32 n  | these words, asks first, in rising order                                            |
///
/// A partial post changes the number of words of a side by sending its first word, and then sends every word that is new to the side. A zero
/// first word empties the side.
library PostCodec {
    uint256 internal constant KIND_FULL = 1;
    uint256 internal constant KIND_TOUCH = 2;
    uint256 internal constant KIND_PARTIAL = 3;
    uint256 internal constant MAX_WORDS = 4;

    uint256 internal constant BLOCK_REF_BYTES = 18;
    uint256 private constant HEAD_BYTES = 41;
    uint256 private constant TOUCH_BYTES = HEAD_BYTES + 4;
    uint256 private constant SEQ_BYTES = 4;
    /// @dev Two volumes, and two nibbles about the words that follow.
    uint256 private constant CURVE_BYTES = 25;

    struct Record {
        uint256 kind;
        bytes32 market;
        uint256 seq;
        uint256 deadline;
        /// @dev Touch and partial post only.
        uint256 baseSeq;
        /// @dev All but a touch, as is this all.
        uint256 snapAsk;
        uint256 snapBid;
        /// @dev In a full post how many words follow, in a partial one which.
        uint256 askWords;
        uint256 bidWords;
        /// @dev Offsets of the first ask word and the first bid word in the data.
        uint256 asksAt;
        uint256 bidsAt;
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
            uint256 kind = word(data, offset) >> 248;
            record.kind = kind;
            record.market = bytes32(word(data, offset + 1));
            uint256 tail = word(data, offset + 33);
            record.seq = tail >> 224;
            record.deadline = (tail >> 192) & type(uint32).max;
            uint256 body = offset + HEAD_BYTES;
            if (kind != KIND_FULL) {
                if (kind != KIND_TOUCH && kind != KIND_PARTIAL) revert ICurveBook.MalformedPost(offset);
                record.baseSeq = (tail >> 160) & type(uint32).max;
                body += SEQ_BYTES;
                if (kind == KIND_TOUCH) {
                    record.end = body;
                    return record;
                }
            }
            if (body + CURVE_BYTES > data.length) revert ICurveBook.MalformedPost(offset);
            tail = word(data, body);
            record.snapAsk = tail >> 160;
            record.snapBid = (tail >> 64) & type(uint96).max;
            uint256 askWords = (tail >> 60) & 0xf;
            uint256 bidWords = (tail >> 56) & 0xf;
            record.askWords = askWords;
            record.bidWords = bidWords;
            if (kind == KIND_PARTIAL) (askWords, bidWords) = (_ones(askWords), _ones(bidWords));
            if (askWords > MAX_WORDS || bidWords > MAX_WORDS) revert ICurveBook.MalformedPost(offset);
            record.asksAt = body + CURVE_BYTES;
            record.bidsAt = record.asksAt + 32 * askWords;
            record.end = record.bidsAt + 32 * bidWords;
            if (record.end > data.length) revert ICurveBook.MalformedPost(offset);
        }
    }

    /// @dev How many of the four low bits are set.
    function _ones(uint256 nibble) private pure returns (uint256) {
        unchecked {
            return (nibble & 1) + ((nibble >> 1) & 1) + ((nibble >> 2) & 1) + (nibble >> 3);
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
