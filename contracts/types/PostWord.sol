// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {SwapWord} from "./SwapWord.sol";

/// @dev The word of a market that posts write; swaps only read it.
///
///      255       164 163        72 71      64 63      32 31       0
///     +-------------+-------------+----------+----------+----------+
///     |   snapAsk   |   snapBid   |  maxTtl  | deadline |   seq    |
///     |     92      |     92      |    8     |    32    |    32    |
///     +-------------+-------------+----------+----------+----------+
///
/// snapAsk and snapBid are the cumulative base units taken from which on the consumption of the live curve counts, modulo 2^92: those that
/// its snapshot reflects, less what the post raised the side by. maxTtl is the owner's setting in seconds, at least 1 once the market is listed.
/// The curve is executable while block.timestamp < deadline.
type PostWord is uint256;

using PostWordLibrary for PostWord global;

library PostWordLibrary {
    uint256 private constant SNAP_ASK_OFFSET = 164;
    uint256 private constant SNAP_BID_OFFSET = 72;
    uint256 private constant MAX_TTL_OFFSET = 64;
    uint256 private constant DEADLINE_OFFSET = 32;
    uint256 private constant MASK_92 = (1 << 92) - 1;
    uint256 private constant MASK_32 = (1 << 32) - 1;
    uint256 private constant MASK_8 = (1 << 8) - 1;

    /// @dev Volumes are reduced modulo 2^92; the other values must fit in their fields.
    function pack(
        uint256 snapAsk_,
        uint256 snapBid_,
        uint256 maxTtlSec_,
        uint256 deadline_,
        uint256 seq_
    ) internal pure returns (PostWord) {
        return
            PostWord.wrap(
                (snapAsk_ << SNAP_ASK_OFFSET) |
                    ((snapBid_ & MASK_92) << SNAP_BID_OFFSET) |
                    (maxTtlSec_ << MAX_TTL_OFFSET) |
                    (deadline_ << DEADLINE_OFFSET) |
                    seq_
            );
    }

    function snapAsk(PostWord self) internal pure returns (uint256) {
        return PostWord.unwrap(self) >> SNAP_ASK_OFFSET;
    }

    function snapBid(PostWord self) internal pure returns (uint256) {
        return (PostWord.unwrap(self) >> SNAP_BID_OFFSET) & MASK_92;
    }

    function maxTtlSec(PostWord self) internal pure returns (uint256) {
        return (PostWord.unwrap(self) >> MAX_TTL_OFFSET) & MASK_8;
    }

    function deadline(PostWord self) internal pure returns (uint256) {
        return (PostWord.unwrap(self) >> DEADLINE_OFFSET) & MASK_32;
    }

    function seq(PostWord self) internal pure returns (uint256) {
        return PostWord.unwrap(self) & MASK_32;
    }

    /// @dev Values are reduced to the width of their field.
    function setSnapAsk(PostWord self, uint256 value) internal pure returns (PostWord) {
        return _set(self, SNAP_ASK_OFFSET, MASK_92, value);
    }

    function setSnapBid(PostWord self, uint256 value) internal pure returns (PostWord) {
        return _set(self, SNAP_BID_OFFSET, MASK_92, value);
    }

    function setMaxTtlSec(PostWord self, uint256 value) internal pure returns (PostWord) {
        return _set(self, MAX_TTL_OFFSET, MASK_8, value);
    }

    function setDeadline(PostWord self, uint256 value) internal pure returns (PostWord) {
        return _set(self, DEADLINE_OFFSET, MASK_32, value);
    }

    function setSeq(PostWord self, uint256 value) internal pure returns (PostWord) {
        return _set(self, 0, MASK_32, value);
    }

    /// @dev Base units of one side of the live curve that are consumed already: (cum - snap) modulo 2^92. If the snapshot names more than was
    /// ever taken, the difference wraps and is larger than any depth, so that nothing can be traded.
    function consumed(PostWord self, bool ask, SwapWord swapWord) internal pure returns (uint256 units) {
        // Same as (ask ? swapWord.cumAsk() - snapAsk(self) : swapWord.cumBid() - snapBid(self)) & MASK_92, unchecked, without a jump: the
        // fields of the asks lie 96 and 92 bits above those of the bids, and what is above a field does not matter modulo 2^92.
        assembly ("memory-safe") {
            units := and(
                sub(shr(add(64, mul(96, ask)), swapWord), shr(add(72, mul(92, ask)), self)),
                0xfffffffffffffffffffffff
            )
        }
    }

    function _set(PostWord self, uint256 offset, uint256 mask, uint256 value) private pure returns (PostWord) {
        return PostWord.wrap((PostWord.unwrap(self) & ~(mask << offset)) | ((value & mask) << offset));
    }
}
