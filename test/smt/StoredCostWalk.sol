// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CurveMath} from "../../contracts/libraries/CurveMath.sol";
import {SideHead} from "../../contracts/types/SideHead.sol";
import {Segments} from "./Segments.sol";

/// @dev The cases of one step; the direction is a literal in each claim.
library StoredCostSteps {
    /// @dev A segment that was consumed before is passed by, and gives nothing.
    function passes(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) internal pure {
        (uint256 length, ) = Segments.some(word, head, direction, lotUnits);
        require(skip >= length);
        (uint256 toSkip, uint256 found, uint256 rest, bool leaves) = CurveMath.tradeStoredStep0(
            word,
            lotUnits,
            SideHead.unwrap(head),
            direction,
            skip,
            base,
            left,
            direction == Segments.ASK
        );
        assert(toSkip == skip - length);
        assert(rest == left);
        assert(found == base);
        assert(!leaves);
    }

    /// @dev What costs no more than is left to spend is taken whole, and no more.
    function takesAll(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) internal pure {
        (uint256 length, uint256 price) = Segments.some(word, head, direction, lotUnits);
        require(skip < length);
        require(left >= (length - skip) * price);
        require(base < 2 ** 92);
        (uint256 toSkip, uint256 found, uint256 rest, bool leaves) = CurveMath.tradeStoredStep0(
            word,
            lotUnits,
            SideHead.unwrap(head),
            direction,
            skip,
            base,
            left,
            direction == Segments.ASK
        );
        assert(rest == left - (length - skip) * price);
        assert(found == base + (length - skip));
        assert(toSkip == 0);
        assert(!leaves);
    }

    /// @dev A buyer gets what the rest pays for, rounded down, and never the whole segment.
    function buysRoundedDown(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) internal pure {
        (uint256 length, uint256 price) = Segments.some(word, head, direction, lotUnits);
        require(skip < length);
        require(left < (length - skip) * price);
        require(base < 2 ** 92);
        (, uint256 found, uint256 rest, bool leaves) = CurveMath.tradeStoredStep0(
            word,
            lotUnits,
            SideHead.unwrap(head),
            direction,
            skip,
            base,
            left,
            direction == Segments.ASK
        );
        assert((found - base) * price <= left);
        assert((found - base + 1) * price > left);
        assert(found - base < length - skip);
        assert(rest == CurveMath.MET);
        assert(leaves);
    }

    /// @dev A seller gives the least that costs more than the rest, and never more than the segment.
    function sellsRoundedUp(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) internal pure {
        (uint256 length, uint256 price) = Segments.some(word, head, direction, lotUnits);
        require(skip < length);
        require(left < (length - skip) * price);
        require(base < 2 ** 92);
        (, uint256 found, uint256 rest, bool leaves) = CurveMath.tradeStoredStep0(
            word,
            lotUnits,
            SideHead.unwrap(head),
            direction,
            skip,
            base,
            left,
            direction == Segments.ASK
        );
        assert((found - base) * price > left);
        assert((found - base - 1) * price <= left);
        assert(found - base <= length - skip);
        assert(rest == CurveMath.MET);
        assert(leaves);
    }
}

/// @notice As `CostWalk`, of the assembly of `CurveMath.tradeStored` that swaps execute, translated by scripts/smt/assembly.mjs.
contract StoredCostWalk {
    function askPasses(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) external pure {
        StoredCostSteps.passes(word, head, Segments.ASK, lotUnits, skip, left, base);
    }

    function bidPasses(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) external pure {
        StoredCostSteps.passes(word, head, Segments.BID, lotUnits, skip, left, base);
    }

    function askTakesAll(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) external pure {
        StoredCostSteps.takesAll(word, head, Segments.ASK, lotUnits, skip, left, base);
    }

    function bidTakesAll(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) external pure {
        StoredCostSteps.takesAll(word, head, Segments.BID, lotUnits, skip, left, base);
    }

    function askBuysRoundedDown(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) external pure {
        StoredCostSteps.buysRoundedDown(word, head, Segments.ASK, lotUnits, skip, left, base);
    }

    function bidSellsRoundedUp(
        uint256 word,
        SideHead head,
        uint256 lotUnits,
        uint256 skip,
        uint256 left,
        uint256 base
    ) external pure {
        StoredCostSteps.sellsRoundedUp(word, head, Segments.BID, lotUnits, skip, left, base);
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
        (uint256 toSkip, uint256 total, uint256 rest, bool leaves) = CurveMath.tradeStoredStep0(
            word,
            lotUnits,
            SideHead.unwrap(head),
            direction,
            skip,
            before,
            left,
            direction == Segments.ASK
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
        (uint256 toSkip, uint256 total, uint256 rest, bool leaves) = CurveMath.tradeStoredStep0(
            word,
            lotUnits,
            SideHead.unwrap(head),
            Segments.BID,
            skip,
            before,
            left,
            false
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
        (uint256 toSkip, uint256 total, uint256 rest, bool leaves) = CurveMath.tradeStoredStep0(
            word,
            lotUnits,
            SideHead.unwrap(head),
            Segments.BID,
            skip,
            before,
            left,
            false
        );
        assert(rest == left);
        assert(total == before);
        assert(toSkip == skip);
        assert(leaves);
    }
}
