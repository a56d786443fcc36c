// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CurveMath} from "../../contracts/libraries/CurveMath.sol";
import {KnotLibrary} from "../../contracts/types/Knot.sol";

/// @notice One step of `CurveMath.raisedUnits`, by its own assembly, translated by scripts/smt/assembly.mjs. Before the step `total` lots
/// end in front of a knot, fewer than those that are consumed. By induction over the knots, the consumption that is raised ends where
/// the first segment does that reaches it, is never below what it was, and stays what it was within the exact segments and beyond the side.
contract Raise {
    using KnotLibrary for uint256;

    /// @dev Memory: anything.
    mapping(uint256 position => uint256 word) private _stored;

    /// @dev What is consumed lies above `lots - 1` whole lots and not above `lots`. The first step looks at the knot behind the head.
    function countsLotsRoundedUp(
        uint256 consumed,
        uint256 lotUnits,
        uint256 knotAt,
        uint256 exactKnots,
        uint256 end
    ) external pure {
        require(consumed > 0);
        require(consumed < 2 ** 92);
        require(lotUnits > 0);
        require(lotUnits <= 10 ** 18);
        require(exactKnots < 16);
        require(knotAt < 2 ** 64);
        require(end > 4);
        (uint256 lots, uint256 exactEnd, uint256 last, uint256 total) = CurveMath.raisedUnitsHead0(
            consumed,
            lotUnits,
            knotAt,
            exactKnots,
            end
        );
        assert(lots * lotUnits >= consumed);
        assert(lots * lotUnits < consumed + lotUnits);
        assert(exactEnd == knotAt + 4 * exactKnots);
        assert(last == end - 4);
        assert(total == 0);
    }

    function _length(uint256 knotAt) private view returns (uint256) {
        unchecked {
            return _stored[knotAt + 4].top().lengthLots();
        }
    }

    /// @dev A segment that ends before what is consumed is passed by, and raises nothing.
    function passes(
        uint256 knotAt,
        uint256 total,
        uint256 lotUnits,
        uint256 consumed,
        uint256 exactEnd,
        uint256 lots
    ) external view {
        require(knotAt < 2 ** 64);
        require(total < 2 ** 32);
        uint256 length = _length(knotAt);
        require(length < 2 ** 27);
        require(total + length < lots);
        (uint256 next, uint256 sum, uint256 raised, bool leaves) = CurveMath.raisedUnitsStep0(
            knotAt,
            total,
            lotUnits,
            consumed,
            exactEnd,
            0,
            lots,
            _stored
        );
        assert(next == knotAt + 4);
        assert(sum == total + length);
        assert(raised == 0);
        assert(!leaves);
    }

    /// @dev The first one that does not, and is not exact, raises to its end.
    function endsAtASegmentsEnd(
        uint256 knotAt,
        uint256 total,
        uint256 lotUnits,
        uint256 consumed,
        uint256 exactEnd,
        uint256 lots
    ) external view {
        require(knotAt < 2 ** 64);
        require(total < 2 ** 32);
        uint256 length = _length(knotAt);
        require(length < 2 ** 27);
        require(total + length >= lots);
        require(knotAt + 4 > exactEnd);
        require(lotUnits <= 10 ** 18);
        uint256 segmentEnd = (total + length) * lotUnits;
        require(segmentEnd >= consumed);
        (, uint256 sum, uint256 raised, bool leaves) = CurveMath.raisedUnitsStep0(
            knotAt,
            total,
            lotUnits,
            consumed,
            exactEnd,
            0,
            lots,
            _stored
        );
        assert(sum == total + length);
        assert(raised == segmentEnd - consumed);
        assert(leaves);
    }

    /// @dev Among the exact ones it raises nothing.
    function staysWithinTheExactOnes(
        uint256 knotAt,
        uint256 total,
        uint256 lotUnits,
        uint256 consumed,
        uint256 exactEnd,
        uint256 lots
    ) external view {
        require(knotAt < 2 ** 64);
        require(total < 2 ** 32);
        uint256 length = _length(knotAt);
        require(length < 2 ** 27);
        require(total + length >= lots);
        require(knotAt + 4 <= exactEnd);
        (, , uint256 raised, bool leaves) = CurveMath.raisedUnitsStep0(
            knotAt,
            total,
            lotUnits,
            consumed,
            exactEnd,
            0,
            lots,
            _stored
        );
        assert(raised == 0);
        assert(leaves);
    }
}
