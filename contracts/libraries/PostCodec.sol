// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../interfaces/ICurveBook.sol";

/// @dev Where a record lies in the call data, from the beginning of the call. Its fields are read from there when they are needed.
type PostRecord is uint256;

using PostCodec for PostRecord global;

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
/// | 12    | exactAskKnots 4 bits, snapAsk 92 bits                                       |
/// | 12    | exactBidKnots, snapBid                                                      |
/// | 1     | number of words, 0 to 4 each: asks in the high nibble, bids in the low one  |
/// | 32 n  | ask words, then bid words; the first word of a side repeats its number      |
///
/// | bytes | body of a touch                               |
/// |-------|-----------------------------------------------|
/// | 4     | baseSeq: the curve that is prolonged          |
///
/// | bytes | body of a partial post                                                              |
/// |-------|-------------------------------------------------------------------------------------|
/// | 4     | baseSeq: the curve whose other words stay                                           |
/// | 12    | exactAskKnots, snapAsk, of the curve as it is afterwards                            |
/// | 12    | exactBidKnots, snapBid                                                              |
/// | 1     | which words follow: bit i of the high nibble is ask word i, of the low one bid word i |
/// | 32 n  | these words, asks first, in rising order                                            |
///
/// A partial post that changes the number of words of a side sends the side's first word, and every word that the side did not use before. A
/// first word of zero empties the side.
///
/// snapAsk and snapBid are the cumulative base units taken from each side that the snapshot reflects, modulo 2^92. exactAskKnots and
/// exactBidKnots count the leading segments of each side, 0 to 15, on which the curve equals the book: consumption that ends within one of these
/// is not raised to its end.
library PostCodec {
    uint256 internal constant KIND_FULL = 1;
    uint256 internal constant KIND_TOUCH = 2;
    uint256 internal constant KIND_PARTIAL = 3;
    uint256 internal constant MAX_WORDS = 4;

    uint256 internal constant BLOCK_REF_BYTES = 18;
    uint256 private constant HEAD_BYTES = 41;
    uint256 private constant SEQ_BYTES = 4;
    uint256 private constant TOUCH_BYTES = HEAD_BYTES + SEQ_BYTES;
    /// @dev Two volumes of 12 bytes, and one byte about the words that follow.
    uint256 private constant CURVE_BYTES = 25;
    uint256 private constant VOLUME_BITS = 92;

    /// @notice The block that the posted curves were computed from: its number, and the first 12 bytes of its hash as a number.
    function blockRef(bytes calldata data) internal pure returns (uint256 number, uint256 hash) {
        if (data.length < BLOCK_REF_BYTES) revert ICurveBook.MalformedPost(0);
        uint256 head = _load(_at(data, 0));
        return (head >> 208, (head >> 112) & type(uint96).max);
    }

    /// @notice The record at `offset`. Reverts `MalformedPost(offset)` when it is cut short, of unknown kind, or names more words than a side
    /// has. The words themselves are not checked.
    /// @return record All of its fields lie within the data.
    /// @return end Offset of the next record.
    function read(bytes calldata data, uint256 offset) internal pure returns (PostRecord record, uint256 end) {
        unchecked {
            record = PostRecord.wrap(_at(data, offset));
            uint256 recordKind = kind(record);
            uint256 excess = 0;
            if (recordKind == KIND_TOUCH) {
                end = offset + TOUCH_BYTES;
            } else {
                (uint256 asks, uint256 bids) = nibbles(curve(record, recordKind));
                end = offset + HEAD_BYTES + CURVE_BYTES;
                if (recordKind == KIND_FULL) {
                    // Bit 4 is set when either is above MAX_WORDS, since both are below 16.
                    excess = ((asks + 11) | (bids + 11)) & 16;
                } else {
                    if (recordKind != KIND_PARTIAL) revert ICurveBook.MalformedPost(offset);
                    (asks, bids) = (ones(asks), ones(bids));
                    end += SEQ_BYTES;
                }
                end += 32 * (asks + bids);
            }
            // Same as end > data.length || excess != 0, without jumps.
            if (((data.length - end) >> 255) | excess != 0) revert ICurveBook.MalformedPost(offset);
        }
    }

    /* FIELDS OF EVERY RECORD */

    function kind(PostRecord self) internal pure returns (uint256) {
        return _load(PostRecord.unwrap(self)) >> 248;
    }

    function market(PostRecord self) internal pure returns (bytes32) {
        return bytes32(_load(_field(self, 1)));
    }

    function seq(PostRecord self) internal pure returns (uint256) {
        return _load(_field(self, 33)) >> 224;
    }

    function deadline(PostRecord self) internal pure returns (uint256) {
        return _load(_field(self, 37)) >> 224;
    }

    /* OF A TOUCH AND A PARTIAL POST */

    function baseSeq(PostRecord self) internal pure returns (uint256) {
        return _load(_field(self, HEAD_BYTES)) >> 224;
    }

    /* OF ALL BUT A TOUCH */

    /// @return position Of the volumes in the call data.
    function curve(PostRecord self, uint256 recordKind) internal pure returns (uint256 position) {
        unchecked {
            // Same as recordKind == KIND_FULL ? HEAD_BYTES : TOUCH_BYTES, without a jump: the kinds are 1 and 3.
            return _field(self, HEAD_BYTES + SEQ_BYTES * (recordKind >> 1));
        }
    }

    /// @param curveAt What `curve` returned.
    /// @return snapAsk 92 bits; above them stands what `exactKnots` reads.
    /// @return snapBid Likewise.
    function volumes(uint256 curveAt) internal pure returns (uint256 snapAsk, uint256 snapBid) {
        uint256 both = _load(curveAt);
        return (both >> 160, (both >> 64) & type(uint96).max);
    }

    /// @param volume What `volumes` returned of a side.
    /// @return On how many leading segments of the side the curve equals the book, as the poster says.
    function exactKnots(uint256 volume) internal pure returns (uint256) {
        return volume >> VOLUME_BITS;
    }

    /// @param curveAt What `curve` returned.
    /// @return asks In a full post how many ask words follow, in a partial one which: bit i is word i.
    /// @return bids Likewise.
    function nibbles(uint256 curveAt) internal pure returns (uint256 asks, uint256 bids) {
        uint256 tail = _load(curveAt);
        return ((tail >> 60) & 0xf, (tail >> 56) & 0xf);
    }

    /// @param curveAt What `curve` returned.
    /// @return position Of the first word in the call data.
    function words(uint256 curveAt) internal pure returns (uint256 position) {
        unchecked {
            return curveAt + CURVE_BYTES;
        }
    }

    /// @notice The word at a position of the call data.
    function word(uint256 position) internal pure returns (uint256 value) {
        return _load(position);
    }

    function _field(PostRecord self, uint256 offset) private pure returns (uint256) {
        unchecked {
            return PostRecord.unwrap(self) + offset;
        }
    }

    /// @dev How many of the four low bits are set.
    function ones(uint256 nibble) internal pure returns (uint256) {
        unchecked {
            return (nibble & 1) + ((nibble >> 1) & 1) + ((nibble >> 2) & 1) + (nibble >> 3);
        }
    }

    function _at(bytes calldata data, uint256 offset) private pure returns (uint256 position) {
        assembly ("memory-safe") {
            position := add(data.offset, offset)
        }
    }

    /// @dev 32 bytes of the call data. Bytes beyond its end are zero, and a caller ignores bytes beyond its record.
    function _load(uint256 position) private pure returns (uint256 value) {
        assembly ("memory-safe") {
            value := calldataload(position)
        }
    }
}
