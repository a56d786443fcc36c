// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice Arithmetic on which the rest builds, as formulas. Each function is one claim.
contract Proofs {
    /// @dev A cost counted in parts, rounded up each time, is never below the cost of the whole.
    function ceilsNeverGain(uint256 a, uint256 b, uint256 d) external pure {
        require(a < 2 ** 200 && b < 2 ** 200 && d > 0 && d < 2 ** 68);
        assert((a + d - 1) / d + (b + d - 1) / d >= (a + b + d - 1) / d);
    }

    /// @dev A yield counted in parts, rounded down each time, is never above the yield of the whole.
    function floorsNeverGain(uint256 a, uint256 b, uint256 d) external pure {
        require(a < 2 ** 200 && b < 2 ** 200 && d > 0 && d < 2 ** 68);
        assert(a / d + b / d <= (a + b) / d);
    }

    /// @dev Selling what was bought at a price not below it, rounded against the taker both times, brings no more than was paid.
    function roundTripsNeverGain(uint256 cost, uint256 yield, uint256 d) external pure {
        require(cost < 2 ** 200 && yield <= cost && d > 0 && d < 2 ** 68);
        assert(yield / d <= (cost + d - 1) / d);
    }

    /// @dev What is consumed of a side only grows with what is taken, as long as less than 2^92 was taken since the snapshot.
    function consumedOnlyGrows(uint256 cum, uint256 snap, uint256 more) external pure {
        require(cum < 2 ** 96 && snap <= cum && cum - snap < 2 ** 91 && more < 2 ** 91);
        uint256 before = (cum - snap) % 2 ** 92;
        uint256 later = (cum + more - snap) % 2 ** 92;
        assert(later == before + more);
    }

    /// @dev The widths of the arithmetic: the largest cost of a side and its price in quote units fit.
    function productsFit(uint256 subticks, uint256 depth, uint256 tickLotUnits, uint256 lotUnits) external pure {
        require(subticks < 2 ** 41 && depth < 2 ** 92 && tickLotUnits < 2 ** 113 && lotUnits <= 10 ** 18);
        uint256 cost = subticks * depth;
        assert(cost < 2 ** 133);
        uint256 price = cost * tickLotUnits + lotUnits * 256;
        assert(price >= lotUnits * 256);
    }
}
