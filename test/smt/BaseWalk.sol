// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CurveMath} from "../../contracts/libraries/CurveMath.sol";
import {SideHead} from "../../contracts/types/SideHead.sol";
import {Segments} from "./Segments.sol";

/// @dev The cases of one step; the direction is a literal in each claim.
library BaseSteps {
    /// @dev A segment that was consumed before is passed by, and costs nothing.
    function passes(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) internal pure {
        (uint256 length, ) = Segments.some(word, head, direction, lotUnits);
        require(skip >= length);
        (uint256 rest, uint256 total, uint256 toSkip, uint256 count) = CurveMath._takeBase(
            word,
            1,
            head,
            direction,
            lotUnits,
            skip,
            left,
            cost
        );
        assert(toSkip == skip - length);
        assert(rest == left);
        assert(total == cost);
        assert(count == 0);
    }

    /// @dev What fits in the rest of a segment ends the walk, at the price of the segment.
    function ends(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) internal pure {
        (uint256 length, uint256 price) = Segments.some(word, head, direction, lotUnits);
        require(skip < length);
        require(left <= length - skip);
        require(cost < 2 ** 133);
        (uint256 rest, uint256 total, , uint256 count) = CurveMath._takeBase(
            word,
            1,
            head,
            direction,
            lotUnits,
            skip,
            left,
            cost
        );
        assert(rest == 0);
        assert(total == cost + left * price);
        assert(total - cost < 2 ** 115);
        assert(count == 1);
    }

    /// @dev Else the rest of it is taken whole, and no more.
    function takesAll(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) internal pure {
        (uint256 length, uint256 price) = Segments.some(word, head, direction, lotUnits);
        require(skip < length);
        require(left > length - skip);
        require(cost < 2 ** 133);
        (uint256 rest, uint256 total, uint256 toSkip, uint256 count) = CurveMath._takeBase(
            word,
            1,
            head,
            direction,
            lotUnits,
            skip,
            left,
            cost
        );
        assert(rest == left - (length - skip));
        assert(total == cost + (length - skip) * price);
        assert(total - cost < 2 ** 115);
        assert(toSkip == 0);
        assert(count == 0);
    }
}

/// @notice One step of the walk that takes base units. By induction over the steps: the cost is the sum of what is taken of each segment times
/// its price, nothing consumed before is taken, no segment gives more than is left of it, and all but the last give all of it.
contract BaseWalk {
    function askPasses(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        BaseSteps.passes(word, head, Segments.ASK, lotUnits, skip, left, cost);
    }

    function bidPasses(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        BaseSteps.passes(word, head, Segments.BID, lotUnits, skip, left, cost);
    }

    function askEnds(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        BaseSteps.ends(word, head, Segments.ASK, lotUnits, skip, left, cost);
    }

    function bidEnds(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        BaseSteps.ends(word, head, Segments.BID, lotUnits, skip, left, cost);
    }

    function askTakesAll(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        BaseSteps.takesAll(word, head, Segments.ASK, lotUnits, skip, left, cost);
    }

    function bidTakesAll(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        BaseSteps.takesAll(word, head, Segments.BID, lotUnits, skip, left, cost);
    }

    /// @dev What `Segments.some` takes for granted.
    function segmentFits(uint256 word, SideHead head, uint256 lotUnits, uint256 price) external pure {
        (uint256 length, ) = Segments.any(word, head, Segments.ASK, lotUnits);
        require(price < 2 ** 27);
        assert(length < 2 ** 87);
        assert(length * price < 2 ** 114);
    }

    /// @dev What the claims about negative prices take for granted.
    function negativeSegmentFits(uint256 length, uint256 below) external pure {
        require(length < 2 ** 87);
        require(below < 2 ** 16);
        assert(length * (below + 1) < 2 ** 104);
    }

    /// @dev A knot without length ends the side.
    function emptyKnotEndsTheSide(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 before
    ) external pure {
        (uint256 length, ) = Segments.any(word, head, direction, lotUnits);
        require(length == 0);
        (uint256 rest, uint256 total, uint256 toSkip, uint256 count) = CurveMath._takeBase(
            word,
            1,
            head,
            direction,
            lotUnits,
            skip,
            left,
            before
        );
        assert(rest == left);
        assert(total == before);
        assert(toSkip == skip);
        assert(count == 1);
    }

    /// @dev So does a bid without price.
    function freeBidEndsTheSide(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 before
    ) external pure {
        (uint256 length, uint256 price) = Segments.any(word, head, Segments.BID, lotUnits);
        require(length < 2 ** 87);
        require(price == 0);
        (uint256 rest, uint256 total, uint256 toSkip, uint256 count) = CurveMath._takeBase(
            word,
            1,
            head,
            Segments.BID,
            lotUnits,
            skip,
            left,
            before
        );
        assert(rest == left);
        assert(total == before);
        assert(toSkip == skip);
        assert(count == 1);
    }

    /// @dev And one whose price would be negative; by `Words.bidPriceIsItsFields` it is not far below zero.
    function negativeBidEndsTheSide(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 before,
        uint256 below
    ) external pure {
        (uint256 length, uint256 price) = Segments.any(word, head, Segments.BID, lotUnits);
        require(length < 2 ** 87);
        require(length > 0);
        require(below < 2 ** 16);
        require(price == type(uint256).max - below);
        require(length * (below + 1) < 2 ** 104);
        (uint256 rest, uint256 total, uint256 toSkip, uint256 count) = CurveMath._takeBase(
            word,
            1,
            head,
            Segments.BID,
            lotUnits,
            skip,
            left,
            before
        );
        assert(rest == left);
        assert(total == before);
        assert(toSkip == skip);
        assert(count == 1);
    }
}
