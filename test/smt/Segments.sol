// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {KnotLibrary} from "../../contracts/types/Knot.sol";
import {SideHead, SideHeadLibrary} from "../../contracts/types/SideHead.sol";

/// @notice What claims about a step of the walk start from. No branches: each one doubles what the compiler writes.
library Segments {
    uint256 internal constant ASK = 1;
    uint256 internal constant BID = type(uint256).max;

    /// @dev The segment of the first knot of a word, whatever the knot and the head say.
    function any(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits
    ) internal pure returns (uint256 length, uint256 price) {
        require(SideHead.unwrap(head) < 2 ** 32);
        require(lotUnits > 0);
        require(lotUnits <= 10 ** 18);
        length = KnotLibrary.top(word).lengthLots() * lotUnits;
        price = SideHeadLibrary.quantaOf(head.basePrice(), direction, KnotLibrary.top(word));
    }

    /// @dev One that can be traded against. That its product fits is what `BaseWalk.segmentFits` proves, and the width of a price what
    /// `Words` does.
    function some(
        uint256 word,
        SideHead head,
        uint256 direction,
        uint256 lotUnits
    ) internal pure returns (uint256 length, uint256 price) {
        (length, price) = any(word, head, direction, lotUnits);
        require(length > 0);
        require(price > 0);
        require(price < 2 ** 27);
        require(length * price < 2 ** 114);
    }
}
