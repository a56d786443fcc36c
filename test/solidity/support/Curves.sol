// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Knot} from "../../../contracts/types/Knot.sol";
import {SideHead} from "../../../contracts/types/SideHead.sol";

/// @notice Builds packed words, and computes what they mean in the plainest way, without the code under test.
library Curves {
    struct Segment {
        /// @dev In lots.
        uint256 mantissa;
        uint256 exponent;
        uint256 offset;
    }

    /// @dev Words of a side; none for no segments.
    function pack(
        uint256 shift,
        uint256 base,
        Segment[] memory segments
    ) internal pure returns (uint256[] memory words) {
        uint256 n = segments.length;
        if (n == 0) return words;
        words = new uint256[](1 + n / 8);
        words[0] = (shift << 252) | (words.length << 249) | (base << 224);
        for (uint256 i = 0; i < n; ++i) {
            Segment memory s = segments[i];
            uint256 knot = (s.mantissa << 20) | (s.exponent << 16) | s.offset;
            // Counting the head as position 0, knot i sits at position i + 1.
            words[(i + 1) / 8] |= knot << (224 - 32 * ((i + 1) % 8));
        }
    }

    /// @dev A side of `count` equal segments with prices one apart.
    function ladder(uint256 base, uint256 count, uint256 lots) internal pure returns (uint256[] memory words) {
        Segment[] memory segments = new Segment[](count);
        for (uint256 i = 0; i < count; ++i) {
            segments[i] = Segment(lots, 0, i);
        }
        return pack(0, base, segments);
    }

    /// @dev Length in lots and price in subticks of each segment, up to the first that ends the side.
    function unpack(
        uint256[] memory words,
        bool ask
    ) internal pure returns (uint256[] memory lots, uint256[] memory subticks) {
        uint256 max = words.length == 0 ? 0 : words.length * 8 - 1;
        lots = new uint256[](max);
        subticks = new uint256[](max);
        for (uint256 i = 0; i < max; ++i) {
            uint256 knot = (words[(i + 1) / 8] >> (224 - 32 * ((i + 1) % 8))) & 0xffffffff;
            uint256 base = (words[0] >> 224) & 0x1ffffff;
            uint256 offset = knot & 0xffff;
            if (knot >> 20 == 0 || (ask ? base + offset == 0 : offset >= base)) break;
            lots[i] = (knot >> 20) * 2 ** ((knot >> 16) & 15);
            subticks[i] = (ask ? base + offset : base - offset) * 2 ** (words[0] >> 252);
        }
    }

    function depth(uint256[] memory words, bool ask, uint256 lotUnits) internal pure returns (uint256 units) {
        (uint256[] memory lots, ) = unpack(words, ask);
        for (uint256 i = 0; i < lots.length; ++i) {
            units += lots[i] * lotUnits;
        }
    }

    /// @dev G of the first `units` of a side.
    function cost(uint256[] memory words, bool ask, uint256 lotUnits, uint256 units) internal pure returns (uint256 g) {
        (uint256[] memory lots, uint256[] memory subticks) = unpack(words, ask);
        for (uint256 i = 0; i < lots.length && units != 0; ++i) {
            uint256 take = lots[i] * lotUnits < units ? lots[i] * lotUnits : units;
            g += take * subticks[i];
            units -= take;
        }
        require(units == 0, "beyond depth");
    }

    /// @dev G of `units` after `skip`.
    function cost(
        uint256[] memory words,
        bool ask,
        uint256 lotUnits,
        uint256 skip,
        uint256 units
    ) internal pure returns (uint256 g) {
        return cost(words, ask, lotUnits, skip + units) - cost(words, ask, lotUnits, skip);
    }

    /// @dev At which consumption a side is entered of which `consumed` was taken between its snapshot and its landing.
    function raised(
        uint256[] memory words,
        bool ask,
        uint256 lotUnits,
        uint256 exactKnots,
        uint256 consumed
    ) internal pure returns (uint256) {
        (uint256[] memory lots, ) = unpack(words, ask);
        uint256 end = 0;
        for (uint256 i = 0; i < lots.length && end < consumed; ++i) {
            end += lots[i] * lotUnits;
            if (end >= consumed) return i < exactKnots ? consumed : end;
        }
        return consumed;
    }

    function hashOf(uint256[] memory askWords, uint256[] memory bidWords) internal pure returns (bytes32) {
        return keccak256(bytes.concat(abi.encodePacked(askWords), abi.encodePacked(bidWords)));
    }
}
