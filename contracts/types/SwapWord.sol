// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketScale} from "./MarketScale.sol";

/// @dev The word of a market that swaps write. Posts never do; the owner sets the scale.
///
///      255      160 159       64 63      24 23      0
///     +------------+------------+----------+---------+
///     |   cumAsk   |   cumBid   | fillSeq  |  scale  |
///     |     96     |     96     |    40    |   24    |
///     +------------+------------+----------+---------+
///
/// cumAsk and cumBid are the base units ever taken from each side, modulo 2^96. fillSeq counts the fills of both sides.
type SwapWord is uint256;

using SwapWordLibrary for SwapWord global;

library SwapWordLibrary {
    uint256 private constant CUM_ASK_OFFSET = 160;
    uint256 private constant CUM_BID_OFFSET = 64;
    uint256 private constant FILL_SEQ_OFFSET = 24;
    uint256 private constant MASK_96 = (1 << 96) - 1;
    uint256 private constant MASK_92 = (1 << 92) - 1;
    uint256 private constant MASK_40 = (1 << 40) - 1;
    uint256 private constant MASK_24 = (1 << 24) - 1;

    function cumAsk(SwapWord self) internal pure returns (uint256) {
        return SwapWord.unwrap(self) >> CUM_ASK_OFFSET;
    }

    function cumBid(SwapWord self) internal pure returns (uint256) {
        return (SwapWord.unwrap(self) >> CUM_BID_OFFSET) & MASK_96;
    }

    function fillSeq(SwapWord self) internal pure returns (uint256) {
        return (SwapWord.unwrap(self) >> FILL_SEQ_OFFSET) & MASK_40;
    }

    function scale(SwapWord self) internal pure returns (MarketScale) {
        return MarketScale.wrap(SwapWord.unwrap(self) & MASK_24);
    }

    /// @dev Values are reduced to the width of their field.
    function setCumAsk(SwapWord self, uint256 value) internal pure returns (SwapWord) {
        return _set(self, CUM_ASK_OFFSET, MASK_96, value);
    }

    function setCumBid(SwapWord self, uint256 value) internal pure returns (SwapWord) {
        return _set(self, CUM_BID_OFFSET, MASK_96, value);
    }

    function setFillSeq(SwapWord self, uint256 value) internal pure returns (SwapWord) {
        return _set(self, FILL_SEQ_OFFSET, MASK_40, value);
    }

    function setScale(SwapWord self, MarketScale value) internal pure returns (SwapWord) {
        return _set(self, 0, MASK_24, MarketScale.unwrap(value));
    }

    /// @dev The carry of a curve whose snapshot reflects these volumes: what was taken of each side since.
    /// @param snapAsk Bits above the 92 of a volume don't matter.
    /// @return asks Base units, modulo 2^92.
    /// @return bids Likewise.
    function takenSince(
        SwapWord self,
        uint256 snapAsk,
        uint256 snapBid
    ) internal pure returns (uint256 asks, uint256 bids) {
        unchecked {
            asks = (cumAsk(self) - snapAsk) & MASK_92;
            bids = ((SwapWord.unwrap(self) >> CUM_BID_OFFSET) - snapBid) & MASK_92;
        }
    }

    /// @dev Counts one fill of `baseUnits` on one side. Both counters wrap in their fields.
    function take(SwapWord self, bool ask, uint256 baseUnits) internal pure returns (SwapWord taken) {
        // Same as setFillSeq(ask ? setCumAsk(self, cumAsk(self) + baseUnits) : setCumBid(self, cumBid(self) + baseUnits), fillSeq(self) + 1),
        // unchecked, without a jump: the fields of asks and bids lie 96 bits apart, and of each sum only the field's own bits are taken over.
        assembly ("memory-safe") {
            let offset := add(64, mul(96, ask))
            let field := shl(offset, 0xffffffffffffffffffffffff)
            taken := xor(self, and(xor(self, add(self, shl(offset, baseUnits))), field))
            taken := xor(taken, and(xor(taken, add(taken, 0x1000000)), 0xffffffffff000000))
        }
    }

    function _set(SwapWord self, uint256 offset, uint256 mask, uint256 value) private pure returns (SwapWord) {
        return SwapWord.wrap((SwapWord.unwrap(self) & ~(mask << offset)) | ((value & mask) << offset));
    }
}
