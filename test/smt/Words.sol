// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Knot, KnotLibrary} from "../../contracts/types/Knot.sol";
import {SideHead, SideHeadLibrary} from "../../contracts/types/SideHead.sol";
import {SwapWord} from "../../contracts/types/SwapWord.sol";
import {MarketScale} from "../../contracts/types/MarketScale.sol";

/// @notice What the packed words say, by their own functions: each is the sum of its fields, which are as wide as documented.
contract Words {
    /// @dev A knot is the 32 highest bits of a word and the sum of its three fields.
    function knotIsItsFields(uint256 word) external pure {
        Knot knot = KnotLibrary.top(word);
        assert(knot.mantissa() < 2 ** 12 && knot.exponent() < 2 ** 4 && knot.priceOffset() < 2 ** 16);
        assert(Knot.unwrap(knot) == knot.mantissa() * 2 ** 20 + knot.exponent() * 2 ** 16 + knot.priceOffset());
        assert(Knot.unwrap(knot) == word / 2 ** 224);
    }

    /// @dev A length is below 2^27 lots, and zero only without a mantissa.
    function lengthFits(uint256 word) external pure {
        Knot knot = KnotLibrary.top(word);
        assert(knot.lengthLots() < 2 ** 27);
        assert((knot.lengthLots() == 0) == (knot.mantissa() == 0));
        assert(knot.exponent() != 3 || knot.lengthLots() == knot.mantissa() * 8);
    }

    function headIsItsFields(uint256 word) external pure {
        SideHead head = SideHeadLibrary.headOf(word);
        assert(head.shift() < 2 ** 4 && head.wordsUsed() < 2 ** 3 && head.basePrice() < 2 ** 25);
        assert(SideHead.unwrap(head) == head.shift() * 2 ** 28 + head.wordsUsed() * 2 ** 25 + head.basePrice());
    }

    /// @dev +1 for asks and -1 for bids, by the assembly.
    function directions() external pure {
        assert(SideHeadLibrary.direction(true) == 1);
        assert(SideHeadLibrary.direction(false) == type(uint256).max);
    }

    function askPriceIsItsFields(uint256 base, uint256 word) external pure {
        require(base < 2 ** 25);
        Knot knot = KnotLibrary.top(word);
        uint256 quanta = SideHeadLibrary.quantaOf(base, 1, knot);
        assert(quanta == base + knot.priceOffset());
        assert(SideHeadLibrary.isPositive(quanta) == (quanta != 0));
    }

    function bidPriceIsItsFields(uint256 base, uint256 word) external pure {
        require(base < 2 ** 25);
        Knot knot = KnotLibrary.top(word);
        uint256 quanta = SideHeadLibrary.quantaOf(base, type(uint256).max, knot);
        assert(SideHeadLibrary.isPositive(quanta) == (base > knot.priceOffset()));
        if (base > knot.priceOffset()) assert(quanta == base - knot.priceOffset());
        else assert(quanta == 0 || quanta >= 2 ** 256 - 2 ** 16);
    }

    /// @dev The assembly of `CurveMath.tradeStored` reads the same fields of a knot.
    function assemblyReadsKnot(uint256 word) external pure {
        Knot knot = KnotLibrary.top(word);
        assert(word >> 244 == knot.mantissa());
        assert((word >> 240) & 0xf == knot.exponent());
        assert((word >> 224) & 0xffff == knot.priceOffset());
    }

    /// @dev And of the head, above which it counts the knots that it has passed.
    function assemblyReadsHead(uint256 head, uint256 passed) external pure {
        require(head < 2 ** 32 && passed < 64);
        uint256 counted = passed * 2 ** 32 + head;
        SideHead side = SideHead.wrap(head);
        assert(counted & 0x1ffffff == side.basePrice());
        assert((counted >> 28) & 0xf == side.shift());
        assert((counted >> 25) & 7 == side.wordsUsed());
        assert(counted >> 35 == passed / 8);
        assert((counted & 0x700000000 == 0) == (passed % 8 == 0));
    }

    function scaleFields(SwapWord swapWord, bool isToken0) external pure {
        MarketScale s = swapWord.scale();
        assert(s.tickLotMantissa() <= 1023 && s.tickLotExponent() < 32 && s.lotExponent() < 32);
        assert(s.isBuy(isToken0) == (isToken0 != s.baseIsToken0()));
    }
}
