// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {Ownable2StepUpgradeable} from "@openzeppelin/contracts-upgradeable/access/Ownable2StepUpgradeable.sol";
import {ICurveBook} from "./interfaces/ICurveBook.sol";
import {ICustodian} from "./interfaces/ICustodian.sol";
import {CurveMath} from "./libraries/CurveMath.sol";
import {MarketIds} from "./libraries/MarketIds.sol";
import {PostCodec, PostRecord} from "./libraries/PostCodec.sol";
import {FillRef, FillRefLibrary} from "./types/FillRef.sol";
import {MarketScale, MarketScaleLibrary} from "./types/MarketScale.sol";
import {PostWord, PostWordLibrary} from "./types/PostWord.sol";
import {SideHeadLibrary} from "./types/SideHead.sol";
import {SwapWord} from "./types/SwapWord.sol";

/// @title CurveBook
/// @notice The documentation is in {ICurveBook}.
contract CurveBook is ICurveBook, Ownable2StepUpgradeable, UUPSUpgradeable {
    using PostCodec for bytes;

    /* STORAGE */

    /// @dev The words of a side beyond those that its first word counts are leftovers and are never read.
    struct Market {
        SwapWord swapWord;
        PostWord postWord;
        uint256[4] askWords;
        uint256[4] bidWords;
        address base;
        address quote;
        uint256 index;
    }

    /// @custom:storage-location erc7201:curvebook.storage.CurveBook
    struct CurveBookStorage {
        mapping(bytes32 market => Market) markets;
        mapping(address account => bool) posters;
        bytes32[] ids;
    }

    // keccak256(abi.encode(uint256(keccak256("curvebook.storage.CurveBook")) - 1)) & ~bytes32(uint256(0xff))
    bytes32 private constant STORAGE_LOCATION = 0xa38d78212eb18d6bb0d38624cf847896232e7de10c47b7a18de50988a9912d00;

    uint256 private constant MAX_TTL_SEC = type(uint8).max;
    uint256 private constant MAX_BATCH = 256;

    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable ENTRYPOINT;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    ICustodian private immutable CUSTODIAN;

    /* SETUP */

    /// @param entrypoint The only caller of `consume`.
    /// @param custodian Pays what is sold here.
    /// @custom:oz-upgrades-unsafe-allow constructor
    constructor(address entrypoint, address custodian) {
        ENTRYPOINT = entrypoint;
        CUSTODIAN = ICustodian(custodian);
        _disableInitializers();
    }

    function initialize(address owner) external initializer {
        __Ownable_init(owner);
    }

    function _authorizeUpgrade(address) internal override onlyOwner {}

    /* ONLY OWNER FUNCTIONS */

    /// @inheritdoc ICurveBook
    function listMarket(
        address base,
        address quote,
        uint256 lotExponent,
        uint256 tickLotMantissa,
        uint256 tickLotExponent,
        uint256 maxTtlSec
    ) external onlyOwner returns (bytes32 market) {
        bool tokensOk = base != quote && base.code.length != 0 && quote.code.length != 0;
        bool gridOk =
            lotExponent <= MarketScaleLibrary.MAX_LOT_EXPONENT &&
                tickLotMantissa != 0 &&
                tickLotMantissa <= MarketScaleLibrary.MAX_TICK_LOT_MANTISSA &&
                tickLotExponent <= MarketScaleLibrary.MAX_TICK_LOT_EXPONENT;
        if (!tokensOk || !gridOk) {
            revert BadMarketConfig(base, quote, lotExponent, tickLotMantissa, tickLotExponent);
        }
        _checkMaxTtl(maxTtlSec);

        CurveBookStorage storage $ = _storage();
        market = MarketIds.idOf(base, quote);
        Market storage m = $.markets[market];
        if (m.swapWord.scale().isListed()) revert MarketExists(market);

        MarketScale scale = MarketScaleLibrary.pack(lotExponent, tickLotMantissa, tickLotExponent, base < quote);
        m.swapWord = m.swapWord.setScale(scale);
        m.postWord = m.postWord.setMaxTtlSec(maxTtlSec);
        (m.base, m.quote, m.index) = (base, quote, $.ids.length);
        $.ids.push(market);
        emit MarketListed(market, base, quote, m.index, scale.lotUnits(), scale.tickLotUnits(), maxTtlSec);
    }

    /// @inheritdoc ICurveBook
    function setMaxTtl(bytes32 market, uint256 maxTtlSec) external onlyOwner {
        Market storage m = _listed(market);
        _checkMaxTtl(maxTtlSec);
        m.postWord = m.postWord.setMaxTtlSec(maxTtlSec);
        emit MaxTtlSet(market, maxTtlSec);
    }

    /// @inheritdoc ICurveBook
    function setTakerFees(bytes32 market, bool charged) external onlyOwner {
        Market storage m = _listed(market);
        m.swapWord = m.swapWord.setScale(m.swapWord.scale().setChargesFees(charged));
        emit TakerFeesSet(market, charged);
    }

    /// @inheritdoc ICurveBook
    function setPoster(address poster, bool allowed) external onlyOwner {
        _storage().posters[poster] = allowed;
        emit PosterSet(poster, allowed);
    }

    /* POSTS */

    modifier onlyPoster() {
        if (!_storage().posters[msg.sender]) revert NotPoster(msg.sender);
        _;
    }

    /// @inheritdoc ICurveBook
    function post(bytes calldata data) external onlyPoster {
        _checkBlock(data);
        (PostRecord record, uint256 end) = data.read(PostCodec.BLOCK_REF_BYTES);
        if (end != data.length) revert MalformedPost(end);
        (bool applied, uint256 liveSeq) = _apply(record);
        if (!applied) revert StaleSeq(record.market(), uint32(record.seq()), uint32(liveSeq));
    }

    /// @inheritdoc ICurveBook
    function postBatch(bytes calldata data) external onlyPoster returns (uint256 applied) {
        _checkBlock(data);
        uint256 offset = PostCodec.BLOCK_REF_BYTES;
        for (uint256 i = 0; offset < data.length; ++i) {
            if (i == MAX_BATCH) revert MalformedPost(offset);
            (PostRecord record, uint256 end) = data.read(offset);
            (bool done, uint256 liveSeq) = _apply(record);
            if (done) applied |= 1 << i;
            else emit PostSkipped(record.market(), uint32(record.seq()), uint32(liveSeq));
            offset = end;
        }
    }

    /// @dev A curve computed from a block that the chain dropped must never land. blockhash is zero for blocks older than 256 and for those
    /// to come, which never counts as agreement.
    function _checkBlock(bytes calldata data) private view {
        (uint256 number, uint256 expected) = data.blockRef();
        uint256 actual = uint256(blockhash(number)) >> 160;
        if (actual != expected || actual == 0) {
            revert OrphanedBlock(number, bytes12(uint96(expected)), bytes12(uint96(actual)));
        }
    }

    /// @return applied False for a record that is out of date; nothing was written then.
    function _apply(PostRecord record) private returns (bool applied, uint256 liveSeq) {
        bytes32 market = record.market();
        Market storage m = _storage().markets[market];
        PostWord live = m.postWord;
        liveSeq = live.seq();
        uint256 maxTtlSec = live.maxTtlSec();
        if (maxTtlSec == 0) revert UnknownMarket(market);
        if (record.seq() <= liveSeq) return (false, liveSeq);

        uint256 kind = record.kind();
        if (kind != PostCodec.KIND_FULL) {
            // Else words would merge with those of another curve, or a dead curve would come to life again.
            if (record.baseSeq() != liveSeq) return (false, liveSeq);
            if (block.timestamp >= live.deadline()) revert CurveExpired(market, live.deadline());
        }
        _checkDeadline(market, record.deadline(), maxTtlSec);
        if (kind == PostCodec.KIND_TOUCH) _touch(m, live, record);
        else _goLive(m, live, record, kind);
        return (true, liveSeq);
    }

    function _checkDeadline(bytes32 market, uint256 deadline, uint256 maxTtlSec) private view {
        unchecked {
            // Neither too early nor too late, in one comparison: below block.timestamp + 1 the difference wraps.
            if (deadline - block.timestamp - 1 >= maxTtlSec) {
                revert DeadlineOutOfRange(market, deadline, block.timestamp + 1, block.timestamp + maxTtlSec);
            }
        }
    }

    function _touch(Market storage m, PostWord live, PostRecord record) private {
        m.postWord = live.setDeadline(record.deadline()).setSeq(record.seq());
        emit CurveTouched(record.market(), uint32(record.seq()), uint32(record.baseSeq()), uint32(record.deadline()));
    }

    /// @dev Never reads or writes the swap word: what was taken in the meantime stays consumed, and no swap can make a post fail.
    function _goLive(Market storage m, PostWord live, PostRecord record, uint256 kind) private {
        uint256 curveAt = record.curve(kind);
        bytes32 wordsHash = kind == PostCodec.KIND_FULL ? _replace(m, record, curveAt) : _amend(m, record, curveAt);
        (uint256 snapAsk, uint256 snapBid) = PostCodec.volumes(curveAt);
        (uint256 seq, uint256 deadline) = (record.seq(), record.deadline());
        PostWord next = PostWordLibrary.pack(snapAsk, snapBid, live.maxTtlSec(), deadline, seq);
        m.postWord = next;
        emit CurvePosted(
            record.market(),
            uint32(seq),
            uint32(deadline),
            uint96(next.snapAsk()),
            uint96(next.snapBid()),
            wordsHash
        );
    }

    /// @return wordsHash Of all words of the curve.
    function _replace(Market storage m, PostRecord record, uint256 curveAt) private returns (bytes32 wordsHash) {
        (uint256 asks, uint256 bids) = PostCodec.nibbles(curveAt);
        unchecked {
            uint256 wordsAt = PostCodec.words(curveAt);
            uint256 firstAsk = _storeSide(m.askWords, wordsAt, asks);
            uint256 firstBid = _storeSide(m.bidWords, wordsAt + 32 * asks, bids);
            if (_basesTouch(firstAsk, firstBid)) _requireApart(record, _words(m.askWords), _words(m.bidWords));
            uint256 length = 32 * (asks + bids);
            // Same as keccak256(<the words in the call data>), in memory that stays free.
            assembly ("memory-safe") {
                let copy := mload(0x40)
                calldatacopy(copy, wordsAt, length)
                wordsHash := keccak256(copy, length)
            }
        }
    }

    /// @dev Reads every word that stays, for the hash of the whole curve and for the check of its prices.
    /// @return wordsHash Of all words of the curve.
    function _amend(Market storage m, PostRecord record, uint256 curveAt) private returns (bytes32 wordsHash) {
        (uint256 askMask, uint256 bidMask) = PostCodec.nibbles(curveAt);
        (uint256 askCount, ) = record.wordCounts(PostCodec.KIND_PARTIAL);
        uint256[] memory asks = _amendSide(m.askWords, PostCodec.words(curveAt), askMask);
        uint256[] memory bids = _amendSide(m.bidWords, PostCodec.words(curveAt) + 32 * askCount, bidMask);
        if (asks.length != 0 && bids.length != 0 && _basesTouch(asks[0], bids[0])) _requireApart(record, asks, bids);
        return keccak256(abi.encodePacked(asks, bids));
    }

    /// @dev An empty side is one zero word. Otherwise the first word must count the words, since a walk believes it.
    /// @param at Position of the words in the call data.
    /// @param count At most four, as the codec has checked.
    function _storeSide(uint256[4] storage words, uint256 at, uint256 count) private returns (uint256 first) {
        if (count != 0) first = PostCodec.word(at);
        if (SideHeadLibrary.headOf(first).wordsUsed() != count) revert MalformedPost(_offsetOf(at));
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

    /// @dev Positions count from the beginning of the call, offsets from that of the data: the only argument of both functions that post.
    function _offsetOf(uint256 position) private pure returns (uint256 offset) {
        assembly ("memory-safe") {
            offset := sub(position, add(calldataload(4), 0x24))
        }
    }

    /// @dev Writes the words that `mask` names. None of them may lie beyond the words that the side uses afterwards, and each word that it did
    /// not use before must be among them, since what the storage holds there is left over from an older curve.
    /// @return live All words of the side afterwards.
    function _amendSide(uint256[4] storage words, uint256 at, uint256 mask) private returns (uint256[] memory live) {
        uint256 first = words[0];
        uint256 usedBefore = SideHeadLibrary.headOf(first).wordsUsed();
        if (mask & 1 != 0) first = PostCodec.word(at);
        uint256 used = SideHeadLibrary.headOf(first).wordsUsed();
        uint256 allowed = used == 0 ? 1 : (1 << used) - 1;
        uint256 needed = ((1 << used) - 1) & ~((1 << usedBefore) - 1);
        if (used > PostCodec.MAX_WORDS || mask & ~allowed != 0 || needed & ~mask != 0 || (used == 0 && first != 0)) {
            revert MalformedPost(_offsetOf(at));
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

    /// @dev No ask is below its side's base and no bid above it, so comparing the bases settles nearly every post; only if they touch, the
    /// knots are looked at.
    function _basesTouch(uint256 firstAsk, uint256 firstBid) private pure returns (bool) {
        return SideHeadLibrary.headOf(firstAsk).baseSubticks() <= SideHeadLibrary.headOf(firstBid).baseSubticks();
    }

    /// @dev Guards that no sequence of swaps on one curve can gain.
    function _requireApart(PostRecord record, uint256[] memory asks, uint256[] memory bids) private pure {
        uint256 bestAsk = CurveMath.bestSubticks(asks, true);
        uint256 bestBid = CurveMath.bestSubticks(bids, false);
        if (bestAsk != 0 && bestAsk <= bestBid) revert CrossedCurve(record.market(), bestAsk, bestBid);
    }

    /* TRADES */

    /// @inheritdoc ICurveBook
    function consume(Request calldata request) external returns (Fill calldata) {
        address entrypoint = ENTRYPOINT;
        bool allowed;
        uint256 amount;
        address tokenIn;
        bool exactOut;
        address tokenOut;
        // Same as allowed = msg.sender == ENTRYPOINT and (amount, tokenIn, exactOut, tokenOut) = (request.amount, request.tokenIn,
        // request.exactOut, request.tokenOut). The entrypoint has checked the addresses as it decoded them.
        assembly ("memory-safe") {
            allowed := eq(caller(), entrypoint)
            amount := calldataload(request)
            tokenIn := calldataload(add(request, 0x20))
            exactOut := calldataload(add(request, 0x40))
            tokenOut := calldataload(add(request, 0x60))
        }
        if (!allowed) revert NotEntrypoint(msg.sender);
        (bytes32 market, bool isToken0) = MarketIds.locate(tokenIn, tokenOut);
        Market storage m = _storage().markets[market];
        // What the fill holds is written as soon as it is known, so that the walk has little to carry.
        FillRef fill = FillRefLibrary.create(market);
        SwapWord swapWord;
        uint256 available;
        bool isBuy;
        {
            PostWord live = m.postWord;
            // A market that is not listed has no deadline.
            if (block.timestamp >= live.deadline()) _revertNotLive(market, live.deadline());
            swapWord = m.swapWord;
            isBuy = swapWord.scale().isBuy(isToken0);
            fill.setCurve(live.seq(), isBuy, live.consumed(isBuy, swapWord), swapWord.scale().chargesFees());
        }
        uint256 baseAmount;
        uint256 quoteAmount;
        (uint256 lotUnits, uint256 tickLotUnits) = swapWord.scale().units();
        (baseAmount, quoteAmount, available) = CurveMath.tradeStored(
            _side(m, isBuy),
            isBuy,
            exactOut,
            amount,
            fill.consumedBefore(),
            lotUnits,
            tickLotUnits
        );
        if (baseAmount == 0) _revertUnfilled(amount, available);

        swapWord = swapWord.take(isBuy, baseAmount);
        m.swapWord = swapWord;
        fill.answer(swapWord.fillSeq(), baseAmount, quoteAmount);
    }

    /// @inheritdoc ICurveBook
    function preview(
        address tokenIn,
        address tokenOut,
        uint256 amount,
        bool exactOut
    ) external view returns (uint256, uint256) {
        _preview(tokenIn, tokenOut, amount, exactOut, false);
    }

    /// @inheritdoc ICurveBook
    function previewSwap(
        address tokenIn,
        address tokenOut,
        uint256 amount,
        bool exactOut
    ) external view returns (uint256, uint256) {
        _preview(tokenIn, tokenOut, amount, exactOut, true);
    }

    /// @dev Ends the call with (amountIn, amountOut) as its answer.
    /// @param ofVault Whether the vault must be able to pay.
    function _preview(address tokenIn, address tokenOut, uint256 amount, bool exactOut, bool ofVault) private view {
        Market storage m = _storage().markets[MarketIds.idOf(tokenIn, tokenOut)];
        PostWord live = m.postWord;
        // A market that is not listed has no deadline.
        if (block.timestamp >= live.deadline()) _answer(0, 0);
        SwapWord swapWord = m.swapWord;
        bool isBuy = swapWord.scale().isBuy(tokenIn < tokenOut);
        (uint256 baseAmount, uint256 quoteAmount, ) = CurveMath.tradeStored(
            _side(m, isBuy),
            isBuy,
            exactOut,
            amount,
            live.consumed(isBuy, swapWord),
            swapWord.scale().lotUnits(),
            swapWord.scale().tickLotUnits()
        );
        (uint256 amountIn, uint256 amountOut) = (baseAmount, quoteAmount);
        // Same as if (isBuy) (amountIn, amountOut) = (amountOut, amountIn), without a jump.
        assembly ("memory-safe") {
            let swapped := mul(xor(amountIn, amountOut), isBuy)
            amountIn := xor(amountIn, swapped)
            amountOut := xor(amountOut, swapped)
        }
        if (ofVault && amountOut != 0 && amountOut > _availableLiquidity(tokenOut)) _answer(0, 0);
        _answer(amountIn, amountOut);
    }

    /// @dev Ends the call.
    function _answer(uint256 amountIn, uint256 amountOut) private pure {
        // Same as return (amountIn, amountOut) of the function that was called from outside.
        assembly ("memory-safe") {
            mstore(0x00, amountIn)
            mstore(0x20, amountOut)
            return(0x00, 0x40)
        }
    }

    function _availableLiquidity(address token) private view returns (uint256 units) {
        ICustodian custodian = CUSTODIAN;
        uint256 selector = uint32(ICustodian.availableLiquidity.selector);
        // Same as CUSTODIAN.availableLiquidity(token), in scratch space: 36 bytes from offset 28. The last argument is computed first, so
        // returndatasize() is that of this call; an answer of another length comes from no custodian.
        assembly ("memory-safe") {
            mstore(0x00, selector)
            mstore(0x20, token)
            if iszero(and(eq(returndatasize(), 0x20), staticcall(gas(), custodian, 0x1c, 0x24, 0x00, 0x20))) {
                let reason := mload(0x40)
                returndatacopy(reason, 0x00, returndatasize())
                revert(reason, returndatasize())
            }
            units := mload(0x00)
        }
    }

    /// @inheritdoc ICurveBook
    function chargesFees(address tokenIn, address tokenOut) external view returns (bool) {
        return _storage().markets[MarketIds.idOf(tokenIn, tokenOut)].swapWord.scale().chargesFees();
    }

    function _revertNotLive(bytes32 market, uint256 deadline) private view {
        _listed(market);
        revert CurveExpired(market, deadline);
    }

    function _revertUnfilled(uint256 amount, uint256 available) private pure {
        if (amount == 0) revert ZeroAmount();
        if (amount > CurveMath.MAX_AMOUNT) revert AmountTooLarge(amount, CurveMath.MAX_AMOUNT);
        if (available == CurveMath.ENOUGH) revert ZeroOutput(amount);
        revert InsufficientDepth(amount, available);
    }

    /* VIEWS */

    /// @inheritdoc ICurveBook
    function isPoster(address account) external view returns (bool) {
        return _storage().posters[account];
    }

    /// @inheritdoc ICurveBook
    function marketCount() external view returns (uint256) {
        return _storage().ids.length;
    }

    /// @inheritdoc ICurveBook
    function marketAt(uint256 index) external view returns (bytes32 market) {
        return _storage().ids[index];
    }

    /// @inheritdoc ICurveBook
    function marketState(bytes32 market) external view returns (MarketState memory state) {
        Market storage m = _listed(market);
        SwapWord swapWord = m.swapWord;
        PostWord postWord = m.postWord;
        state.base = m.base;
        state.quote = m.quote;
        state.index = m.index;
        state.lotUnits = swapWord.scale().lotUnits();
        state.tickLotUnits = swapWord.scale().tickLotUnits();
        state.maxTtlSec = postWord.maxTtlSec();
        state.cumAsk = swapWord.cumAsk();
        state.cumBid = swapWord.cumBid();
        state.fillSeq = swapWord.fillSeq();
        state.snapAsk = postWord.snapAsk();
        state.snapBid = postWord.snapBid();
        state.deadline = postWord.deadline();
        state.seq = postWord.seq();
        state.chargesFees = swapWord.scale().chargesFees();
    }

    /// @inheritdoc ICurveBook
    function curveWords(bytes32 market) external view returns (uint256[] memory askWords, uint256[] memory bidWords) {
        Market storage m = _listed(market);
        return (_words(m.askWords), _words(m.bidWords));
    }

    /* INTERNAL */

    function _words(uint256[4] storage side) private view returns (uint256[] memory words) {
        words = new uint256[](SideHeadLibrary.headOf(side[0]).wordsUsed());
        for (uint256 i = 0; i < words.length; ++i) {
            words[i] = side[i];
        }
    }

    /// @dev The words that a buyer or a seller trades against.
    function _side(Market storage m, bool isBuy) private view returns (uint256[4] storage words) {
        uint256[4] storage bids = m.bidWords;
        // Same as isBuy ? m.askWords : m.bidWords, without a jump: the asks' four slots come right before the bids'.
        assembly ("memory-safe") {
            words.slot := sub(bids.slot, shl(2, isBuy))
        }
    }

    function _listed(bytes32 market) private view returns (Market storage m) {
        m = _storage().markets[market];
        if (!m.swapWord.scale().isListed()) revert UnknownMarket(market);
    }

    function _checkMaxTtl(uint256 maxTtlSec) private pure {
        if (maxTtlSec == 0 || maxTtlSec > MAX_TTL_SEC) revert TtlOutOfRange(maxTtlSec, MAX_TTL_SEC);
    }

    function _storage() private pure returns (CurveBookStorage storage $) {
        assembly ("memory-safe") {
            $.slot := STORAGE_LOCATION
        }
    }
}
