// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CurveMath} from "../../contracts/libraries/CurveMath.sol";
import {SideHead} from "../../contracts/types/SideHead.sol";
import {Segments} from "./Segments.sol";

/// @dev The cases of one step; the direction is a literal in each claim.
library StoredBaseSteps {
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
        (uint256 toSkip, uint256 total, uint256 rest, bool leaves) = CurveMath.tradeStoredStep1(
            word,
            lotUnits,
            SideHead.unwrap(head),
            direction,
            skip,
            cost,
            left
        );
        assert(toSkip == skip - length);
        assert(rest == left);
        assert(total == cost);
        assert(!leaves);
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
        (, uint256 total, uint256 rest, bool leaves) = CurveMath.tradeStoredStep1(
            word,
            lotUnits,
            SideHead.unwrap(head),
            direction,
            skip,
            cost,
            left
        );
        assert(rest == 0);
        assert(total == cost + left * price);
        assert(total - cost < 2 ** 115);
        assert(leaves);
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
        (uint256 toSkip, uint256 total, uint256 rest, bool leaves) = CurveMath.tradeStoredStep1(
            word,
            lotUnits,
            SideHead.unwrap(head),
            direction,
            skip,
            cost,
            left
        );
        assert(rest == left - (length - skip));
        assert(total == cost + (length - skip) * price);
        assert(total - cost < 2 ** 115);
        assert(toSkip == 0);
        assert(!leaves);
    }
}

/// @notice As `BaseWalk`, of the assembly of `CurveMath.tradeStored` that swaps execute, translated by scripts/smt/assembly.mjs.
contract StoredBaseWalk {
    function askPasses(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        StoredBaseSteps.passes(word, head, Segments.ASK, lotUnits, skip, left, cost);
    }

    function bidPasses(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        StoredBaseSteps.passes(word, head, Segments.BID, lotUnits, skip, left, cost);
    }

    function askEnds(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        StoredBaseSteps.ends(word, head, Segments.ASK, lotUnits, skip, left, cost);
    }

    function bidEnds(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        StoredBaseSteps.ends(word, head, Segments.BID, lotUnits, skip, left, cost);
    }

    function askTakesAll(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        StoredBaseSteps.takesAll(word, head, Segments.ASK, lotUnits, skip, left, cost);
    }

    function bidTakesAll(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 cost
    ) external pure {
        StoredBaseSteps.takesAll(word, head, Segments.BID, lotUnits, skip, left, cost);
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
        (uint256 toSkip, uint256 total, uint256 rest, bool leaves) = CurveMath.tradeStoredStep1(
            word,
            lotUnits,
            SideHead.unwrap(head),
            direction,
            skip,
            before,
            left
        );
        assert(rest == left);
        assert(total == before);
        assert(toSkip == skip);
        assert(leaves);
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
        (uint256 toSkip, uint256 total, uint256 rest, bool leaves) = CurveMath.tradeStoredStep1(
            word,
            lotUnits,
            SideHead.unwrap(head),
            Segments.BID,
            skip,
            before,
            left
        );
        assert(rest == left);
        assert(total == before);
        assert(toSkip == skip);
        assert(leaves);
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
        (uint256 toSkip, uint256 total, uint256 rest, bool leaves) = CurveMath.tradeStoredStep1(
            word,
            lotUnits,
            SideHead.unwrap(head),
            Segments.BID,
            skip,
            before,
            left
        );
        assert(rest == left);
        assert(total == before);
        assert(toSkip == skip);
        assert(leaves);
    }
}
