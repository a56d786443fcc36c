// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @dev The settled withdrawal claim of one maker in one token.
///
///      255         128 127       64 63        0
///     +---------------+------------+-----------+
///     |    amount     |  readyAt   |   basis   |
///     |      128      |     64     |    64     |
///     +---------------+------------+-----------+
///
/// basis counts how often the claim was raised, lowered or executed. It never falls, and stays when the amount returns to zero.
type ClaimWord is uint256;

using ClaimWordLibrary for ClaimWord global;

library ClaimWordLibrary {
    uint256 internal constant MAX_AMOUNT = type(uint128).max;
    uint256 private constant AMOUNT_OFFSET = 128;
    uint256 private constant READY_AT_OFFSET = 64;
    uint256 private constant MASK_128 = type(uint128).max;
    uint256 private constant MASK_64 = type(uint64).max;

    function amount(ClaimWord self) internal pure returns (uint256) {
        return ClaimWord.unwrap(self) >> AMOUNT_OFFSET;
    }

    function readyAt(ClaimWord self) internal pure returns (uint64) {
        return uint64(ClaimWord.unwrap(self) >> READY_AT_OFFSET);
    }

    function basis(ClaimWord self) internal pure returns (uint256) {
        return ClaimWord.unwrap(self) & MASK_64;
    }

    /// @dev Values are reduced to the width of their field.
    function setAmount(ClaimWord self, uint256 value) internal pure returns (ClaimWord) {
        return _set(self, AMOUNT_OFFSET, MASK_128, value);
    }

    function setReadyAt(ClaimWord self, uint256 value) internal pure returns (ClaimWord) {
        return _set(self, READY_AT_OFFSET, MASK_64, value);
    }

    function setBasis(ClaimWord self, uint256 value) internal pure returns (ClaimWord) {
        return _set(self, 0, MASK_64, value);
    }

    /// @dev The next version of the claim.
    function bump(ClaimWord self) internal pure returns (ClaimWord) {
        unchecked {
            return setBasis(self, basis(self) + 1);
        }
    }

    function _set(ClaimWord self, uint256 offset, uint256 mask, uint256 value) private pure returns (ClaimWord) {
        return ClaimWord.wrap((ClaimWord.unwrap(self) & ~(mask << offset)) | ((value & mask) << offset));
    }
}
