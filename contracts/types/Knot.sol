// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @dev One segment of a curve.
///
///      31       20 19      16 15            0
///     +-----------+----------+---------------+
///     | mantissa  | exponent | price offset  |
///     |    12     |    4     |      16       |
///     +-----------+----------+---------------+
///
/// length = (mantissa << exponent) lots. A zero mantissa ends the side, whatever the other bits say.
/// The knot is held in the low 32 bits; the bits above are zero.
type Knot is uint256;

using KnotLibrary for Knot global;

library KnotLibrary {
    uint256 private constant MASK_16 = (1 << 16) - 1;
    uint256 private constant MASK_4 = (1 << 4) - 1;
    uint256 private constant MASK_12 = (1 << 12) - 1;

    /// @dev The knot in the 32 highest bits of `word`.
    function top(uint256 word) internal pure returns (Knot) {
        return Knot.wrap(word >> 224);
    }

    function mantissa(Knot self) internal pure returns (uint256) {
        return Knot.unwrap(self) >> 20;
    }

    function exponent(Knot self) internal pure returns (uint256) {
        return (Knot.unwrap(self) >> 16) & MASK_4;
    }

    function priceOffset(Knot self) internal pure returns (uint256) {
        return Knot.unwrap(self) & MASK_16;
    }

    /// @return Below 2^27.
    function lengthLots(Knot self) internal pure returns (uint256) {
        return mantissa(self) << exponent(self);
    }

    /// @dev Values are reduced to the width of their field.
    function setMantissa(Knot self, uint256 value) internal pure returns (Knot) {
        return _set(self, 20, MASK_12, value);
    }

    function setExponent(Knot self, uint256 value) internal pure returns (Knot) {
        return _set(self, 16, MASK_4, value);
    }

    function setPriceOffset(Knot self, uint256 value) internal pure returns (Knot) {
        return _set(self, 0, MASK_16, value);
    }

    function _set(Knot self, uint256 offset, uint256 mask, uint256 value) private pure returns (Knot) {
        return Knot.wrap((Knot.unwrap(self) & ~(mask << offset)) | ((value & mask) << offset));
    }
}
