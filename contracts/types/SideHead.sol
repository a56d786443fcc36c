// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Knot} from "./Knot.sol";

/// @dev The 32 highest bits of the first word of a side; seven knots follow in that word, eight in each further word.
///
///      31     28 27         25 24             0
///     +---------+-------------+----------------+
///     |    g    | words used  |   base price   |
///     |    4    |      3      |       25       |
///     +---------+-------------+----------------+
///
/// The price of a segment in subticks (1/256 tick) is (base + offset) << g on asks and (base - offset) << g on bids. So no ask is below
/// base << g and no bid above it. Words beyond those used may hold anything; they are never read.
/// The head is held in the low 32 bits; the bits above are zero.
type SideHead is uint256;

using SideHeadLibrary for SideHead global;

library SideHeadLibrary {
    uint256 private constant MASK_25 = (1 << 25) - 1;
    uint256 private constant MASK_4 = (1 << 4) - 1;
    uint256 private constant MASK_3 = (1 << 3) - 1;

    /// @param firstWord The first word of a side; zero for an empty side.
    function headOf(uint256 firstWord) internal pure returns (SideHead) {
        return SideHead.wrap(firstWord >> 224);
    }

    function shift(SideHead self) internal pure returns (uint256) {
        return SideHead.unwrap(self) >> 28;
    }

    function wordsUsed(SideHead self) internal pure returns (uint256) {
        return (SideHead.unwrap(self) >> 25) & MASK_3;
    }

    function basePrice(SideHead self) internal pure returns (uint256) {
        return SideHead.unwrap(self) & MASK_25;
    }

    /// @return subticks What no ask of the side is below, and no bid above.
    function baseSubticks(SideHead self) internal pure returns (uint256 subticks) {
        return basePrice(self) << shift(self);
    }

    /// @return subticks Below 2^41; zero when the price would not be positive, which ends the side.
    function priceOf(SideHead self, Knot knot, bool ask) internal pure returns (uint256 subticks) {
        uint256 quanta = quantaOf(basePrice(self), direction(ask), knot);
        return isPositive(quanta) ? quanta << shift(self) : 0;
    }

    /// @return sign +1 for asks, -1 for bids, as a two's complement.
    function direction(bool ask) internal pure returns (uint256 sign) {
        // Same as ask ? 1 : type(uint256).max, without a jump.
        assembly ("memory-safe") {
            sign := sub(shl(1, ask), 1)
        }
    }

    /// @return quanta Price of a knot in quanta of 2^g subticks, as a two's complement.
    function quantaOf(uint256 basePrice_, uint256 direction_, Knot knot) internal pure returns (uint256 quanta) {
        unchecked {
            return basePrice_ + direction_ * knot.priceOffset();
        }
    }

    function isPositive(uint256 quanta) internal pure returns (bool) {
        unchecked {
            // Zero and negative numbers are all far above the highest price.
            return quanta - 1 < 1 << 27;
        }
    }

    /// @dev Values are reduced to the width of their field.
    function setShift(SideHead self, uint256 value) internal pure returns (SideHead) {
        return _set(self, 28, MASK_4, value);
    }

    function setWordsUsed(SideHead self, uint256 value) internal pure returns (SideHead) {
        return _set(self, 25, MASK_3, value);
    }

    function setBasePrice(SideHead self, uint256 value) internal pure returns (SideHead) {
        return _set(self, 0, MASK_25, value);
    }

    function _set(SideHead self, uint256 offset, uint256 mask, uint256 value) private pure returns (SideHead) {
        return SideHead.wrap((SideHead.unwrap(self) & ~(mask << offset)) | ((value & mask) << offset));
    }
}
