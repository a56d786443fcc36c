// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @dev The grid of a market, as the 24 low bits of its swap word.
///
///      23        19 18              9 8            4 3     0
///     +------------+-----------------+--------------+-------+
///     | lotExponent | tickLotMantissa | tickLotExpo. | flags |
///     |      5      |       10        |      5       |   4   |
///     +------------+-----------------+--------------+-------+
///
/// lotUnits = 10^lotExponent base units in one lot; tickLotUnits = tickLotMantissa x 10^tickLotExponent quote units in one tick of one
/// lot. Bit 0 of the flags: base is token0; bit 1: takers with a fee rate pay it here. A zero mantissa means that the market was never
/// listed. After the listing only bit 1 changes.
/// The scale is held in the low 24 bits; the bits above are zero.
type MarketScale is uint256;

using MarketScaleLibrary for MarketScale global;

library MarketScaleLibrary {
    uint256 internal constant MAX_LOT_EXPONENT = 18;
    uint256 internal constant MAX_TICK_LOT_MANTISSA = 1023;
    uint256 internal constant MAX_TICK_LOT_EXPONENT = 31;
    uint256 private constant CHARGES_FEES = 2;

    /// @dev The caller has checked the three numbers against the maxima above.
    function pack(
        uint256 lotExponent_,
        uint256 mantissa_,
        uint256 tickLotExponent_,
        bool baseIsToken0_
    ) internal pure returns (MarketScale) {
        return
            MarketScale.wrap(
                (lotExponent_ << 19) | (mantissa_ << 9) | (tickLotExponent_ << 4) | (baseIsToken0_ ? 1 : 0)
            );
    }

    function lotExponent(MarketScale self) internal pure returns (uint256) {
        return MarketScale.unwrap(self) >> 19;
    }

    function tickLotMantissa(MarketScale self) internal pure returns (uint256) {
        return (MarketScale.unwrap(self) >> 9) & 0x3ff;
    }

    function tickLotExponent(MarketScale self) internal pure returns (uint256) {
        return (MarketScale.unwrap(self) >> 4) & 0x1f;
    }

    function baseIsToken0(MarketScale self) internal pure returns (bool) {
        return MarketScale.unwrap(self) & 1 != 0;
    }

    function chargesFees(MarketScale self) internal pure returns (bool) {
        return MarketScale.unwrap(self) & CHARGES_FEES != 0;
    }

    function setChargesFees(MarketScale self, bool charged) internal pure returns (MarketScale) {
        return MarketScale.wrap((MarketScale.unwrap(self) & ~CHARGES_FEES) | (charged ? CHARGES_FEES : 0));
    }

    /// @param isToken0 Whether the taker pays with token0.
    /// @return buys Whether that buys base.
    function isBuy(MarketScale self, bool isToken0) internal pure returns (bool buys) {
        // Same as isToken0 != baseIsToken0(self).
        assembly ("memory-safe") {
            buys := xor(isToken0, and(self, 1))
        }
    }

    function isListed(MarketScale self) internal pure returns (bool) {
        return tickLotMantissa(self) != 0;
    }

    /// @return lot As `lotUnits`.
    /// @return tickLot As `tickLotUnits`.
    function units(MarketScale self) internal pure returns (uint256 lot, uint256 tickLot) {
        unchecked {
            lot = 10 ** lotExponent(self);
            tickLot = tickLotMantissa(self) * 10 ** tickLotExponent(self);
        }
    }

    /// @return Base units in one lot, at most 10^18 for a listed market.
    function lotUnits(MarketScale self) internal pure returns (uint256) {
        unchecked {
            return 10 ** lotExponent(self);
        }
    }

    /// @return Quote units in one tick of one lot, below 2^113.
    function tickLotUnits(MarketScale self) internal pure returns (uint256) {
        unchecked {
            return tickLotMantissa(self) * 10 ** tickLotExponent(self);
        }
    }
}
