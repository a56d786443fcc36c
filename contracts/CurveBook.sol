// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {Ownable2StepUpgradeable} from "@openzeppelin/contracts-upgradeable/access/Ownable2StepUpgradeable.sol";
import {ICurveBook} from "./interfaces/ICurveBook.sol";
import {ICustodian} from "./interfaces/ICustodian.sol";
import {IOrderSettler} from "./interfaces/IOrderSettler.sol";
import {CurveMath} from "./libraries/CurveMath.sol";
import {CurvePosts} from "./libraries/CurvePosts.sol";
import {MarketIds} from "./libraries/MarketIds.sol";
import {PostCodec, PostRecord} from "./libraries/PostCodec.sol";
import {FillRef, FillRefLibrary} from "./types/FillRef.sol";
import {Market, MarketLibrary} from "./types/Market.sol";
import {MarketScale, MarketScaleLibrary} from "./types/MarketScale.sol";
import {PostWord} from "./types/PostWord.sol";
import {SwapWord} from "./types/SwapWord.sol";

/// @title CurveBook
/// @notice The documentation is in {ICurveBook}.
contract CurveBook is ICurveBook, Ownable2StepUpgradeable, UUPSUpgradeable {
    using PostCodec for bytes;

    /* STORAGE */

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
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    IOrderSettler private immutable SETTLER;

    /* SETUP */

    /// @param entrypoint The only caller of `consume`.
    /// @param custodian Pays what is sold here.
    /// @param settler Says which accounts signed orders may call; zero when there is none.
    /// @custom:oz-upgrades-unsafe-allow constructor
    constructor(address entrypoint, address custodian, address settler) {
        ENTRYPOINT = entrypoint;
        CUSTODIAN = ICustodian(custodian);
        SETTLER = IOrderSettler(settler);
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
        _checkToken(base);
        _checkToken(quote);

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
    function setSeq(bytes32 market, uint32 seq) external onlyOwner {
        Market storage m = _listed(market);
        uint256 liveSeq = m.postWord.seq();
        if (seq > liveSeq) revert SeqOutOfRange(market, seq, 0, liveSeq);
        m.postWord = m.postWord.setSeq(seq).setDeadline(0);
        emit SeqSet(market, seq);
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
        CurvePosts.checkBlock(data);
        (PostRecord record, uint256 end) = data.read(PostCodec.BLOCK_REF_BYTES);
        if (end != data.length) revert MalformedPost(end);
        (bool applied, ) = CurvePosts.applyTo(_storage().markets, record);
        if (!applied) CurvePosts.refuse(record, _storage().markets[record.market()].postWord);
    }

    /// @inheritdoc ICurveBook
    function postBatch(bytes calldata data) external onlyPoster returns (uint256 applied) {
        CurvePosts.checkBlock(data);
        uint256 offset = PostCodec.BLOCK_REF_BYTES;
        for (uint256 i = 0; offset < data.length; ++i) {
            if (i == MAX_BATCH) revert MalformedPost(offset);
            (PostRecord record, uint256 end) = data.read(offset);
            (bool done, uint256 liveSeq) = CurvePosts.applyTo(_storage().markets, record);
            if (done) applied |= 1 << i;
            else emit PostSkipped(record.market(), uint32(record.seq()), uint32(liveSeq));
            offset = end;
        }
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
        // Each member of the fill is written as soon as it is known, so that few variables are on the stack during the walk.
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
            m.sideOf(isBuy),
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

    /// @dev Ends the whole external call, with (amountIn, amountOut) as its answer.
    /// @param ofVault Whether the answer is zero when the vault could not pay `amountOut` now.
    function _preview(address tokenIn, address tokenOut, uint256 amount, bool exactOut, bool ofVault) private view {
        Market storage m = _storage().markets[MarketIds.idOf(tokenIn, tokenOut)];
        PostWord live = m.postWord;
        // A market that is not listed has no deadline.
        if (block.timestamp >= live.deadline()) _answer(0, 0);
        SwapWord swapWord = m.swapWord;
        bool isBuy = swapWord.scale().isBuy(tokenIn < tokenOut);
        (uint256 baseAmount, uint256 quoteAmount, ) = CurveMath.tradeStored(
            m.sideOf(isBuy),
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

    /// @dev Ends the whole external call with these two words as its answer.
    function _answer(uint256 amountIn, uint256 amountOut) private pure {
        // Same as return (amountIn, amountOut) of the function that was called from outside.
        assembly ("memory-safe") {
            mstore(0x00, amountIn)
            mstore(0x20, amountOut)
            return(0x00, 0x40)
        }
    }

    /// @dev What swaps may spend of `token`, in its units.
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

    /// @dev Reverts `UnknownMarket` for a market that is not listed, else `CurveExpired`.
    function _revertNotLive(bytes32 market, uint256 deadline) private view {
        _listed(market);
        revert CurveExpired(market, deadline);
    }

    /// @dev Reverts with the reason why the walk filled nothing.
    /// @param available What `CurveMath.tradeStored` returned.
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
    function isListed(address token) external view returns (bool) {
        CurveBookStorage storage $ = _storage();
        for (uint256 i = 0; i < $.ids.length; ++i) {
            Market storage m = $.markets[$.ids[i]];
            if (token == m.base || token == m.quote) return true;
        }
        return false;
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
        return (MarketLibrary.wordsOf(m.askWords), MarketLibrary.wordsOf(m.bidWords));
    }

    /* INTERNAL */

    function _listed(bytes32 market) private view returns (Market storage m) {
        m = _storage().markets[market];
        if (!m.swapWord.scale().isListed()) revert UnknownMarket(market);
    }

    /// @dev A route may call a target with any data. If the target were a traded token, such a call could move what orders bring to the settler.
    function _checkToken(address token) private view {
        if (address(SETTLER) != address(0) && SETTLER.isTarget(token)) revert ForbiddenToken(token);
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
