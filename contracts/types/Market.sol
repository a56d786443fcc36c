// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {PostWord} from "./PostWord.sol";
import {SideHeadLibrary} from "./SideHead.sol";
import {SwapWord} from "./SwapWord.sol";

/// @notice All that is stored of a market. Swaps write `swapWord` only, posts write `postWord` and the words of the curve only.
/// @dev Words of a side beyond the number that its first word names may be left from an older curve and are never read.
struct Market {
    SwapWord swapWord;
    PostWord postWord;
    uint256[4] askWords;
    uint256[4] bidWords;
    address base;
    address quote;
    uint256 index;
}

using MarketLibrary for Market global;

library MarketLibrary {
    /// @dev The words that a buyer or a seller trades against.
    function sideOf(Market storage self, bool isBuy) internal view returns (uint256[4] storage words) {
        uint256[4] storage bids = self.bidWords;
        // Same as isBuy ? self.askWords : self.bidWords, without a jump: the asks' four slots come right before the bids'.
        assembly ("memory-safe") {
            words.slot := sub(bids.slot, shl(2, isBuy))
        }
    }

    /// @return words The live words of a side, as many as it uses.
    function wordsOf(uint256[4] storage side) internal view returns (uint256[] memory words) {
        words = new uint256[](SideHeadLibrary.headOf(side[0]).wordsUsed());
        for (uint256 i = 0; i < words.length; ++i) {
            words[i] = side[i];
        }
    }
}
