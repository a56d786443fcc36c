// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {ICurveLens} from "../../../contracts/interfaces/ICurveLens.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IPropAmmAdapter} from "../../../contracts/interfaces/IPropAmmAdapter.sol";
import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {Curves} from "./Curves.sol";
import {RandomCurves} from "./RandomCurves.sol";
import {SignatureTransfers} from "./SignatureTransfers.sol";
import {Deployer} from "./Deployer.sol";
import {Vm} from "./Test.sol";
import {ICustodianSetup, IMintableToken, IOwnerSetup} from "./Interfaces.sol";

/// @notice The three contracts behind proxies, the settler, one market with deep pockets on both sides, and everybody who acts on them.
abstract contract Platform is RandomCurves, Deployer {
    address internal constant OWNER = address(0xA11CE);
    address internal constant CURVE_POSTER = address(0xB0A7);
    address internal constant CLAIM_POSTER = address(0xC1A1);
    address internal constant MAKER = address(0x3A4E);
    address internal constant TAKER = address(0x7A4E);
    address internal constant STRANGER = address(0x57A4);

    uint256 internal constant LOT_UNITS = 10 ** 14;
    uint256 internal constant TICK_LOT_UNITS = 1;
    uint256 internal constant MAX_TTL_SEC = 60;
    uint256 internal constant DELAY_SEC = 600;
    uint256 internal constant MAX_SEQ_STEP = 65_536;
    uint256 internal constant START = 1_700_000_000;

    ICustodian internal custodian;
    ICurveBook internal book;
    IEntrypoint internal entrypoint;
    IOrderSettler internal settler;
    ICurveLens internal lens;
    IPropAmmAdapter internal adapter;
    /// @dev As the constructor of the custodian's implementation takes them: proxies of custodian, book and entrypoint, settler, lens, adapter,
    /// implementations of book and entrypoint.
    address[8] internal custodianPeers;
    address internal custodianCode;
    SignatureTransfers internal permit2;
    IMintableToken internal base;
    IMintableToken internal quote;
    bytes32 internal market;

    function setUp() public virtual {
        vm.roll(1000);
        vm.warp(START);
        _deploy();
        base = _newToken("Base", 18);
        quote = _newToken("Quote", 6);
        vm.startPrank(OWNER);
        market = book.listMarket(address(base), address(quote), 14, 1, 0, MAX_TTL_SEC);
        book.setPoster(CURVE_POSTER, true);
        custodian.setPoster(CLAIM_POSTER, true);
        vm.stopPrank();
        _deposit(MAKER, base, 10 ** 30);
        _deposit(MAKER, quote, 10 ** 30);
        _fund(TAKER, base, 10 ** 30);
        _fund(TAKER, quote, 10 ** 30);
    }

    function _proxy(address implementation, bytes memory initialization) private returns (address) {
        return deploy("PlatformProxy.sol:PlatformProxy", abi.encode(implementation, initialization));
    }

    /// @dev Implementations are bound to the proxies' addresses, which follow from this contract's nonce.
    function _deploy() private {
        permit2 = new SignatureTransfers();
        uint256 nonce = vm.getNonce(address(this));
        address custodianAt = vm.computeCreateAddress(address(this), nonce + 3);
        address bookAt = vm.computeCreateAddress(address(this), nonce + 4);
        address entrypointAt = vm.computeCreateAddress(address(this), nonce + 5);
        address settlerAt = vm.computeCreateAddress(address(this), nonce + 6);
        custodianPeers = [
            custodianAt,
            bookAt,
            entrypointAt,
            settlerAt,
            vm.computeCreateAddress(address(this), nonce + 7),
            vm.computeCreateAddress(address(this), nonce + 8),
            vm.computeCreateAddress(address(this), nonce + 1),
            vm.computeCreateAddress(address(this), nonce + 2)
        ];
        custodianCode = deploy("Custodian.sol:Custodian", abi.encode(custodianPeers));
        address bookImpl = deploy("CurveBook.sol:CurveBook", abi.encode(entrypointAt, custodianAt, settlerAt));
        address entrypointImpl = deploy("Entrypoint.sol:Entrypoint", abi.encode(bookAt, custodianAt, settlerAt));
        bytes memory initialize = abi.encodeCall(IOwnerSetup.initialize, (OWNER));
        custodian = ICustodian(_proxy(custodianCode, abi.encodeCall(ICustodianSetup.initialize, (OWNER, DELAY_SEC))));
        book = ICurveBook(_proxy(bookImpl, initialize));
        entrypoint = IEntrypoint(_proxy(entrypointImpl, initialize));
        settler = IOrderSettler(
            deploy(
                "OrderSettler.sol:OrderSettler",
                abi.encode(OWNER, address(permit2), entrypointAt, custodianAt, bookAt)
            )
        );
        lens = ICurveLens(deploy("CurveLens.sol:CurveLens", abi.encode(bookAt, custodianAt)));
        adapter = IPropAmmAdapter(
            deploy("PropAmmAdapter.sol:PropAmmAdapter", abi.encode(entrypointAt, lens, custodianAt))
        );
        assertEq(address(lens), custodianPeers[4], "lens");
        assertEq(address(adapter), custodianPeers[5], "adapter");
        assertEq(bookImpl, custodianPeers[6], "implementation of the book");
        assertEq(entrypointImpl, custodianPeers[7], "implementation of the entrypoint");
        assertEq(address(custodian), custodianAt, "custodian");
        assertEq(address(book), bookAt, "book");
        assertEq(address(entrypoint), entrypointAt, "entrypoint");
        assertEq(address(settler), settlerAt, "settler");
    }

    /// @dev Zero, and every contract of the platform.
    function _forbiddenRecipients() internal view returns (address[] memory all) {
        all = new address[](custodianPeers.length + 2);
        all[1] = custodianCode;
        for (uint256 i = 0; i < custodianPeers.length; ++i) all[i + 2] = custodianPeers[i];
    }

    /* TOKENS */

    function _newToken(string memory name, uint8 decimals) internal returns (IMintableToken) {
        return IMintableToken(deploy("MintableToken.sol:MintableToken", abi.encode(name, name, decimals)));
    }

    function _fund(address account, IMintableToken token, uint256 amount) internal {
        token.mint(account, amount);
        vm.prank(account);
        token.approve(address(entrypoint), type(uint256).max);
    }

    function _deposit(address account, IMintableToken token, uint256 amount) internal {
        token.mint(account, amount);
        vm.startPrank(account);
        token.approve(address(custodian), amount);
        custodian.deposit(address(token), amount);
        vm.stopPrank();
    }

    /* POSTS */

    struct Curve {
        uint32 seq;
        uint32 deadline;
        uint96 snapAsk;
        uint96 snapBid;
        uint256[] asks;
        uint256[] bids;
    }

    function _blockRef() internal view returns (bytes memory) {
        return abi.encodePacked(uint48(block.number - 1), bytes12(blockhash(block.number - 1)));
    }

    function _fullRecord(bytes32 id, Curve memory c) internal pure returns (bytes memory) {
        return
            abi.encodePacked(
                uint8(1),
                id,
                c.seq,
                c.deadline,
                c.snapAsk,
                c.snapBid,
                uint8(c.asks.length * 16 + c.bids.length),
                c.asks,
                c.bids
            );
    }

    function _touchRecord(
        bytes32 id,
        uint32 seq,
        uint32 deadline,
        uint32 baseSeq
    ) internal pure returns (bytes memory) {
        return abi.encodePacked(uint8(2), id, seq, deadline, baseSeq);
    }

    /// @dev `words` are those that the masks name, asks first. The curve that it builds on is the live one.
    function _partialRecord(Curve memory c, uint8 masks, uint256[] memory words) internal view returns (bytes memory) {
        uint32 baseSeq = uint32(book.marketState(market).seq);
        return abi.encodePacked(uint8(3), market, c.seq, c.deadline, baseSeq, c.snapAsk, c.snapBid, masks, words);
    }

    function _post(bytes memory record) internal {
        bytes memory data = bytes.concat(_blockRef(), record);
        vm.prank(CURVE_POSTER);
        book.post(data);
    }

    function _post(Curve memory c) internal {
        _post(_fullRecord(market, c));
    }

    /// @dev A curve with the next sequence number and the longest deadline, which reflects everything taken so far.
    function _fresh(uint256[] memory asks, uint256[] memory bids) internal view returns (Curve memory c) {
        ICurveBook.MarketState memory s = book.marketState(market);
        c = Curve({
            seq: uint32(s.seq + 1),
            deadline: uint32(block.timestamp + MAX_TTL_SEC),
            snapAsk: uint96(s.cumAsk),
            snapBid: uint96(s.cumBid),
            asks: asks,
            bids: bids
        });
    }

    /// @dev Fifteen knots per side around 3000.00 with a tick of 0.01: 12.8 base in all, per side.
    function _postDefault() internal {
        uint256 mid = 300_000 * 2;
        _post(_fresh(_ladder(mid + 2, 15), _ladder(mid - 2, 15)));
    }

    /// @dev In quanta of 128 subticks, which is half a tick; 8533 lots a knot.
    function _ladder(uint256 first, uint256 count) internal pure returns (uint256[] memory) {
        Curves.Segment[] memory s = new Curves.Segment[](count);
        for (uint256 i = 0; i < count; ++i) {
            s[i] = Curves.Segment(4095, 1, i);
        }
        return Curves.pack(7, first, s);
    }

    /// @dev What a ladder of such a depth is consumed by once it is live, if `consumed` of it was taken since its snapshot.
    function _enteredLadder(uint256 depth, uint256 exactKnots, uint256 consumed) internal pure returns (uint256) {
        uint256 index = (consumed + 8190 * LOT_UNITS - 1) / (8190 * LOT_UNITS);
        return consumed > depth || index <= exactKnots ? consumed : index * 8190 * LOT_UNITS;
    }

    /// @dev A volume as a record names it, with the number of segments on which the curve is the book itself.
    function _volume(uint256 exactKnots, uint256 units) internal pure returns (uint96) {
        return uint96((exactKnots << 92) | (units % 2 ** 92));
    }

    /// @dev `c` with the volumes that are stored when it goes live in a market of which nothing was ever taken.
    function _asStored(Curve memory c) internal pure returns (Curve memory stored) {
        (uint256 askCarry, uint256 bidCarry) = (2 ** 96 - uint256(c.snapAsk), 2 ** 96 - uint256(c.snapBid));
        uint256 asks = Curves.raised(c.asks, true, LOT_UNITS, c.snapAsk >> 92, askCarry % 2 ** 92);
        uint256 bids = Curves.raised(c.bids, false, LOT_UNITS, c.snapBid >> 92, bidCarry % 2 ** 92);
        stored = c;
        (stored.snapAsk, stored.snapBid) = (_volume(0, 2 ** 92 - asks), _volume(0, 2 ** 92 - bids));
    }

    /// @dev How a post of `market` is refused whose best prices are these, in subticks.
    function _crossed(uint256 ask, uint256 bid) internal view returns (bytes memory) {
        return abi.encodeWithSelector(ICurveBook.CrossedCurve.selector, market, ask, bid);
    }

    /// @dev The next call shall emit that `c` is live. Snapshot volumes count modulo 2^92.
    function _expectPosted(Curve memory c) internal {
        uint96 low = uint96(2 ** 92 - 1);
        vm.expectEmit(address(book));
        emit ICurveBook.CurvePosted(
            market,
            c.seq,
            c.deadline,
            c.snapAsk & low,
            c.snapBid & low,
            Curves.hashOf(c.asks, c.bids)
        );
    }

    /// @dev The state of the market is that of `c` as far as posts write it.
    function _expectState(Curve memory c) internal view {
        uint96 low = uint96(2 ** 92 - 1);
        ICurveBook.MarketState memory s = book.marketState(market);
        assertEq(s.seq, c.seq, "seq");
        assertEq(s.deadline, c.deadline, "deadline");
        assertEq(s.snapAsk, c.snapAsk & low, "snapAsk");
        assertEq(s.snapBid, c.snapBid & low, "snapBid");
        assertEq(s.maxTtlSec, MAX_TTL_SEC, "maxTtlSec");
    }

    /* SWAPS */

    /// @dev A rate of the taker that the market charges.
    function _setFee(uint256 rate) internal {
        vm.startPrank(OWNER);
        entrypoint.setTakerFee(TAKER, rate);
        book.setTakerFees(market, true);
        vm.stopPrank();
    }

    function _pair(bool isBuy) internal view returns (address tokenIn, address tokenOut) {
        return isBuy ? (address(quote), address(base)) : (address(base), address(quote));
    }

    function _swap(bool isBuy, uint256 amountIn) internal returns (uint256 amountOut) {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        vm.prank(TAKER);
        return entrypoint.swap(tokenIn, tokenOut, amountIn, 0, TAKER, block.timestamp);
    }

    function _swapExactOutput(bool isBuy, uint256 amountOut) internal returns (uint256 amountIn) {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        vm.prank(TAKER);
        return entrypoint.swapExactOutput(tokenIn, tokenOut, amountOut, type(uint256).max, TAKER, block.timestamp);
    }

    /// @dev What the entrypoint quotes is what the book previews, to the unit.
    function _quote(bool isBuy, uint256 amountIn) internal view returns (uint256 amountOut) {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        amountOut = entrypoint.quote(tokenIn, tokenOut, amountIn);
        (, uint256 previewed) = book.previewSwap(tokenIn, tokenOut, amountIn, false);
        assertEq(previewed, amountOut, "previewSwap, exact input");
    }

    function _quoteExactOutput(bool isBuy, uint256 amountOut) internal view returns (uint256 amountIn) {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        amountIn = entrypoint.quoteExactOutput(tokenIn, tokenOut, amountOut);
        (uint256 previewed, ) = book.previewSwap(tokenIn, tokenOut, amountOut, true);
        assertEq(previewed, amountIn, "previewSwap, exact output");
    }

    /// @dev Base units of one side that can still be taken: what the market says when asked for more, borne out by quotes.
    function _depth(bool ask) internal returns (uint256 units) {
        (address tokenIn, address tokenOut) = _pair(ask);
        uint256 most = 2 ** 100 - 1;
        vm.prank(address(entrypoint));
        try book.consume(ICurveBook.Request(most, tokenIn, ask, tokenOut)) {
            revert("no limit");
        } catch (bytes memory reason) {
            assertEq(bytes32(bytes4(reason)), bytes32(ICurveBook.InsufficientDepth.selector), "refusal");
            assembly ("memory-safe") {
                units := mload(add(reason, 68))
            }
        }
        (uint256 amountIn, uint256 amountOut) = book.preview(tokenIn, tokenOut, units + 1, ask);
        assertEq(amountIn + amountOut, 0, "no more than that");
        if (units < LOT_UNITS) return units;
        (amountIn, amountOut) = book.preview(tokenIn, tokenOut, units, ask);
        assertEq(ask ? amountOut : amountIn, units, "all of that");
    }

    struct SwapLog {
        uint256 fillSeq;
        uint256 curveSeq;
        bool isBuy;
        uint256 baseAmount;
        uint256 quoteAmount;
        uint256 fee;
        uint256 inputFee;
        uint256 consumedBefore;
    }

    /// @dev The last `Swap` since `vm.recordLogs`.
    function _lastSwap() internal returns (SwapLog memory log) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = logs.length; i > 0; --i) {
            Vm.Log memory l = logs[i - 1];
            if (l.topics[0] == IEntrypoint.Swap.selector) return abi.decode(l.data, (SwapLog));
        }
        revert("no swap");
    }
}
