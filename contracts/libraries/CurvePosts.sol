// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../interfaces/ICurveBook.sol";
import {Market, MarketLibrary} from "../types/Market.sol";
import {PostWord, PostWordLibrary} from "../types/PostWord.sol";
import {SideHeadLibrary} from "../types/SideHead.sol";
import {SwapWord} from "../types/SwapWord.sol";
import {CurveMath} from "./CurveMath.sol";
import {PostCodec, PostRecord} from "./PostCodec.sol";

/// @notice What a post does to a market. It writes prices, and never a counter; errors and events are those of {ICurveBook}.
library CurvePosts {
    using PostCodec for bytes;

    /// @dev How far a sequence number may rise at once. A poster gives a number to every publication, also to those that never land, and makes
    /// fewer than this many in a day without a chain. The limit also makes it expensive to use up the 2^32 numbers of a market.
    uint256 internal constant MAX_SEQ_STEP = 1 << 16;

    /// @dev Reverts `OrphanedBlock` for a curve that was computed from a block that a reorganisation removed: it must never land. blockhash is
    /// zero for blocks more than 256 ago and for later ones, and zero never matches.
    function checkBlock(bytes calldata data) internal view {
        (uint256 number, uint256 expected) = data.blockRef();
        uint256 actual = uint256(blockhash(number)) >> 160;
        unchecked {
            // Same as actual != expected || actual == 0, without jumps.
            if ((actual ^ expected) | ((actual - 1) >> 255) == 0) return;
        }
        revert ICurveBook.OrphanedBlock(number, bytes12(uint96(expected)), bytes12(uint96(actual)));
    }

    /// @dev Applies one record to its market. Reverts for every fault that is not a matter of time or of another post.
    /// @return applied False for a record that is out of date, or that builds on a curve that is not live; nothing was written then.
    function applyTo(
        mapping(bytes32 market => Market) storage markets,
        PostRecord record
    ) internal returns (bool applied, uint256 liveSeq) {
        bytes32 market = record.market();
        Market storage m = markets[market];
        PostWord live = m.postWord;
        liveSeq = live.seq();
        uint256 maxTtlSec = live.maxTtlSec();
        if (maxTtlSec == 0) revert ICurveBook.UnknownMarket(market);
        unchecked {
            // Neither too low nor too high, in one comparison: for a number up to liveSeq the difference wraps and is huge.
            if (record.seq() - liveSeq - 1 >= MAX_SEQ_STEP) {
                if (record.seq() <= liveSeq) return (false, liveSeq);
                revert ICurveBook.SeqOutOfRange(market, record.seq(), liveSeq + 1, liveSeq + MAX_SEQ_STEP);
            }
        }
        uint256 kind = record.kind();
        if (kind != PostCodec.KIND_FULL) {
            // Otherwise words could be mixed with those of another curve, or an expired curve could be traded again.
            if (record.baseSeq() != liveSeq || block.timestamp >= live.deadline()) return (false, liveSeq);
        }
        unchecked {
            // Neither too early nor too late, in one comparison: for a deadline up to block.timestamp the difference wraps and is huge.
            if (record.deadline() - block.timestamp - 1 >= maxTtlSec) {
                if (record.deadline() <= block.timestamp) return (false, liveSeq);
                _refuseDeadline(record, maxTtlSec);
            }
        }
        if (kind == PostCodec.KIND_TOUCH) _touch(m, live, record);
        else _goLive(m, live, record, kind);
        return (true, liveSeq);
    }

    /// @dev Reverts with the reason why `applyTo` did not apply the record to a market whose post word is `live`.
    function refuse(PostRecord record, PostWord live) internal view {
        (bytes32 market, uint256 seq, uint256 liveSeq) = (record.market(), record.seq(), live.seq());
        bool builds = record.kind() != PostCodec.KIND_FULL;
        if (seq <= liveSeq || (builds && record.baseSeq() != liveSeq)) {
            revert ICurveBook.StaleSeq(market, uint32(seq), uint32(liveSeq));
        }
        if (builds && block.timestamp >= live.deadline()) revert ICurveBook.CurveExpired(market, live.deadline());
        _refuseDeadline(record, live.maxTtlSec());
    }

    function _refuseDeadline(PostRecord record, uint256 maxTtlSec) private view {
        revert ICurveBook.DeadlineOutOfRange(
            record.market(),
            record.deadline(),
            block.timestamp + 1,
            block.timestamp + maxTtlSec
        );
    }

    /// @dev Prolongs the live curve under a new sequence number.
    function _touch(Market storage m, PostWord live, PostRecord record) private {
        m.postWord = live.setDeadline(record.deadline()).setSeq(record.seq());
        emit ICurveBook.CurveTouched(
            record.market(),
            uint32(record.seq()),
            uint32(record.baseSeq()),
            uint32(record.deadline())
        );
    }

    /// @dev Applies a full or a partial post. Never writes the swap word: what was taken in the meantime stays consumed, and no swap can make a
    /// post fail.
    function _goLive(Market storage m, PostWord live, PostRecord record, uint256 kind) private {
        uint256 curveAt = record.curve(kind);
        (bytes memory words, uint256 askCount) = kind == PostCodec.KIND_FULL
            ? _replace(m, record, curveAt)
            : _amend(m, record, curveAt);
        (uint256 seq, uint256 deadline) = (record.seq(), record.deadline());
        (uint256 snapAsk, uint256 snapBid) = _raised(m.swapWord, curveAt, words, askCount);
        PostWord next = PostWordLibrary.pack(snapAsk, snapBid, live.maxTtlSec(), deadline, seq);
        m.postWord = next;
        emit ICurveBook.CurvePosted(
            record.market(),
            uint32(seq),
            uint32(deadline),
            uint96(next.snapAsk()),
            uint96(next.snapBid()),
            keccak256(words)
        );
    }

    /// @dev Raises the consumption of each side of which something was taken since the snapshot to the end of a segment, except within the
    /// leading segments on which the curve equals the book. From there on the curve is nowhere cheaper than what is left of the book.
    /// @param words All words of the curve, asks first.
    /// @return snapAsk What the record names, less what the consumption is raised by, in base units. Only its low 92 bits count.
    /// @return snapBid Likewise.
    function _raised(
        SwapWord swapWord,
        uint256 curveAt,
        bytes memory words,
        uint256 askCount
    ) private pure returns (uint256 snapAsk, uint256 snapBid) {
        (snapAsk, snapBid) = PostCodec.volumes(curveAt);
        (uint256 askCarry, uint256 bidCarry) = swapWord.takenSince(snapAsk, snapBid);
        if (askCarry | bidCarry == 0) return (snapAsk, snapBid);
        uint256 lotUnits = swapWord.scale().lotUnits();
        uint256 askAt;
        assembly ("memory-safe") {
            askAt := add(words, 0x20)
        }
        unchecked {
            (uint256 bidAt, uint256 end) = (askAt + 32 * askCount, askAt + words.length);
            if (askCarry != 0)
                snapAsk -= CurveMath.raisedUnits(askAt, bidAt, PostCodec.exactKnots(snapAsk), askCarry, lotUnits);
            if (bidCarry != 0)
                snapBid -= CurveMath.raisedUnits(bidAt, end, PostCodec.exactKnots(snapBid), bidCarry, lotUnits);
        }
    }

    /// @dev Stores the curve of a full post.
    /// @return words All words of the curve, asks first.
    /// @return asks How many of them are ask words.
    function _replace(
        Market storage m,
        PostRecord record,
        uint256 curveAt
    ) private returns (bytes memory words, uint256 asks) {
        uint256 bids;
        (asks, bids) = PostCodec.nibbles(curveAt);
        unchecked {
            uint256 wordsAt = PostCodec.words(curveAt);
            uint256 firstAsk = _storeSide(m.askWords, wordsAt, asks);
            uint256 firstBid = _storeSide(m.bidWords, wordsAt + 32 * asks, bids);
            if (_basesTouch(firstAsk, firstBid))
                _requireApart(record, MarketLibrary.wordsOf(m.askWords), MarketLibrary.wordsOf(m.bidWords));
            uint256 length = 32 * (asks + bids);
            // Same as words = <the words in the call data>.
            assembly ("memory-safe") {
                words := mload(0x40)
                mstore(words, length)
                calldatacopy(add(words, 0x20), wordsAt, length)
                mstore(0x40, add(add(words, 0x20), length))
            }
        }
    }

    /// @dev Stores the words of a partial post, and reads those that stay: the hash of the curve, the raise and the check of prices need all
    /// words.
    /// @return words All words of the curve, asks first.
    /// @return askCount How many of them are ask words.
    function _amend(
        Market storage m,
        PostRecord record,
        uint256 curveAt
    ) private returns (bytes memory words, uint256 askCount) {
        (uint256 askMask, uint256 bidMask) = PostCodec.nibbles(curveAt);
        uint256 sent = PostCodec.ones(askMask);
        uint256[] memory asks = _amendSide(m.askWords, PostCodec.words(curveAt), askMask);
        uint256[] memory bids = _amendSide(m.bidWords, PostCodec.words(curveAt) + 32 * sent, bidMask);
        if (asks.length != 0 && bids.length != 0 && _basesTouch(asks[0], bids[0])) _requireApart(record, asks, bids);
        return (abi.encodePacked(asks, bids), asks.length);
    }

    /// @dev Stores the words of one side. An empty side is stored as one zero word. The first word must name the number of words, since walks
    /// read as many; else it reverts `MalformedPost`.
    /// @param at Position of the words in the call data.
    /// @param count At most four, as the codec has checked.
    /// @return first The first word as stored.
    function _storeSide(uint256[4] storage words, uint256 at, uint256 count) private returns (uint256 first) {
        first = PostCodec.word(at);
        // Same as if (count == 0) first = 0, without a jump.
        assembly ("memory-safe") {
            first := mul(first, iszero(iszero(count)))
        }
        if (SideHeadLibrary.headOf(first).wordsUsed() != count) revert ICurveBook.MalformedPost(_offsetOf(at));
        words[0] = first;
        // Same as for (uint256 i = 1; i < count; ++i) words[i] = PostCodec.word(at + 32 * i), for at most four words.
        assembly ("memory-safe") {
            if gt(count, 1) {
                sstore(add(words.slot, 1), calldataload(add(at, 0x20)))
                if gt(count, 2) {
                    sstore(add(words.slot, 2), calldataload(add(at, 0x40)))
                    if gt(count, 3) {
                        sstore(add(words.slot, 3), calldataload(add(at, 0x60)))
                    }
                }
            }
        }
    }

    /// @dev The offset of a position in the call data from the beginning of `data`, which is the only argument of both functions that post.
    function _offsetOf(uint256 position) private pure returns (uint256 offset) {
        assembly ("memory-safe") {
            offset := sub(position, add(calldataload(4), 0x24))
        }
    }

    /// @dev Stores the words that `mask` names; bit i is word i. None of them may lie beyond the words that the side uses afterwards, and each
    /// word that the side did not use before must be among them, since storage may hold a word of an older curve there. Else it reverts
    /// `MalformedPost`.
    /// @return live All words of the side afterwards.
    function _amendSide(uint256[4] storage words, uint256 at, uint256 mask) private returns (uint256[] memory live) {
        uint256 first = words[0];
        uint256 usedBefore = SideHeadLibrary.headOf(first).wordsUsed();
        if (mask & 1 != 0) first = PostCodec.word(at);
        uint256 used = SideHeadLibrary.headOf(first).wordsUsed();
        uint256 allowed = used == 0 ? 1 : (1 << used) - 1;
        uint256 needed = ((1 << used) - 1) & ~((1 << usedBefore) - 1);
        if (used > PostCodec.MAX_WORDS || mask & ~allowed != 0 || needed & ~mask != 0 || (used == 0 && first != 0)) {
            revert ICurveBook.MalformedPost(_offsetOf(at));
        }

        live = new uint256[](used);
        if (used == 0) words[0] = 0;
        for (uint256 i = 0; i < used; ++i) {
            if (mask & (1 << i) != 0) {
                live[i] = PostCodec.word(at);
                words[i] = live[i];
                at += 32;
            } else {
                live[i] = words[i];
            }
        }
    }

    /// @dev Whether the base price of the asks is at or below that of the bids. No ask is below its base price and no bid above it, so a post
    /// can be crossed only if this is true; then the knots must be compared.
    function _basesTouch(uint256 firstAsk, uint256 firstBid) private pure returns (bool) {
        return SideHeadLibrary.headOf(firstAsk).baseSubticks() <= SideHeadLibrary.headOf(firstBid).baseSubticks();
    }

    /// @dev Reverts `CrossedCurve` unless the best ask is above the best bid: otherwise a taker could gain by buying and selling on one curve.
    function _requireApart(PostRecord record, uint256[] memory asks, uint256[] memory bids) private pure {
        uint256 bestAsk = CurveMath.bestSubticks(asks, true);
        uint256 bestBid = CurveMath.bestSubticks(bids, false);
        if (bestAsk != 0 && bestAsk <= bestBid) revert ICurveBook.CrossedCurve(record.market(), bestAsk, bestBid);
    }
}
