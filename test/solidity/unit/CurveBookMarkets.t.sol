// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {OwnableUpgradeable} from "@openzeppelin/contracts-upgradeable/access/OwnableUpgradeable.sol";
import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {Platform} from "../support/Platform.sol";

/// @notice Listing, settings of the owner, and reading markets.
contract CurveBookMarketsTest is Platform {
    address private _a;
    address private _b;

    function setUp() public override {
        super.setUp();
        address x = address(_newToken("X", 8));
        address y = address(_newToken("Y", 18));
        (_a, _b) = x < y ? (x, y) : (y, x);
    }

    function test_ListMarket() external {
        bytes32 id = keccak256(abi.encodePacked(_a, _b));
        vm.expectEmit(address(book));
        emit ICurveBook.MarketListed(id, _b, _a, 1, 10 ** 18, 1023 * 10 ** 31, 255);
        bytes32 listed = _list(_b, _a, 18, 1023, 31, 255);
        assertEq(listed, id, "id");
        assertEq(book.marketCount(), 2, "count");
        assertEq(book.marketAt(0), market, "first");
        assertEq(book.marketAt(1), id, "second");
        ICurveBook.MarketState memory s = book.marketState(id);
        assertEq(s.base, _b, "base");
        assertEq(s.quote, _a, "quote");
        assertEq(s.index, 1, "index");
        assertEq(s.lotUnits, 10 ** 18, "lotUnits");
        assertEq(s.tickLotUnits, 1023 * 10 ** 31, "tickLotUnits");
        assertEq(s.maxTtlSec, 255, "maxTtlSec");
        assertEq(s.cumAsk + s.cumBid + s.fillSeq + s.snapAsk + s.snapBid + s.deadline + s.seq, 0, "the rest");
        (uint256[] memory asks, uint256[] memory bids) = book.curveWords(id);
        assertEq(asks.length + bids.length, 0, "words");
    }

    function testFuzz_ListMarketKeepsTheGrid(
        uint256 lot,
        uint256 mantissa,
        uint256 tickLot,
        uint256 ttl,
        bool flip
    ) external {
        lot = bound(lot, 0, 18);
        mantissa = bound(mantissa, 1, 1023);
        tickLot = bound(tickLot, 0, 31);
        ttl = bound(ttl, 1, 255);
        bytes32 id = flip ? _list(_a, _b, lot, mantissa, tickLot, ttl) : _list(_b, _a, lot, mantissa, tickLot, ttl);
        ICurveBook.MarketState memory s = book.marketState(id);
        assertEq(s.base, flip ? _a : _b, "base");
        assertEq(s.lotUnits, 10 ** lot, "lotUnits");
        assertEq(s.tickLotUnits, mantissa * 10 ** tickLot, "tickLotUnits");
        assertEq(s.maxTtlSec, ttl, "maxTtlSec");
    }

    function test_RevertWhen_ConfigIsBad() external {
        _expectBad(_a, _a, 1, 1, 1, 1);
        _expectBad(_a, STRANGER, 1, 1, 1, 1);
        _expectBad(STRANGER, _b, 1, 1, 1, 1);
        _expectBad(_a, address(0), 1, 1, 1, 1);
        _expectBad(_a, _b, 19, 1, 1, 1);
        _expectBad(_a, _b, 1, 0, 1, 1);
        _expectBad(_a, _b, 1, 1024, 1, 1);
        _expectBad(_a, _b, 1, 1, 32, 1);
        _expectBad(_a, _b, 2 ** 255, 1, 1, 1);
        _expectBad(_a, _b, 1, 2 ** 255 + 1, 1, 1);
        _expectBad(_a, _b, 1, 1, 2 ** 255 + 1, 1);
    }

    function test_RevertWhen_PairIsListedAlreadyEitherWay() external {
        vm.startPrank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.MarketExists.selector, market));
        book.listMarket(address(base), address(quote), 14, 1, 0, 60);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.MarketExists.selector, market));
        book.listMarket(address(quote), address(base), 1, 2, 3, 4);
    }

    function test_SetMaxTtl() external {
        _postDefault();
        uint256 deadline = book.marketState(market).deadline;
        vm.expectEmit(address(book));
        emit ICurveBook.MaxTtlSet(market, 1);
        vm.prank(OWNER);
        book.setMaxTtl(market, 1);
        ICurveBook.MarketState memory s = book.marketState(market);
        assertEq(s.maxTtlSec, 1, "maxTtlSec");
        assertEq(s.deadline, deadline, "a live curve keeps its deadline");
        assertEq(s.seq, 1, "and its seq");
    }

    function test_RevertWhen_MaxTtlIsBad() external {
        vm.startPrank(OWNER);
        uint256[3] memory bad = [0, 256, 2 ** 255 + 1];
        for (uint256 i = 0; i < bad.length; ++i) {
            bytes memory outOfRange = abi.encodeWithSelector(
                ICurveBook.TtlOutOfRange.selector,
                bad[i],
                type(uint8).max
            );
            vm.expectRevert(outOfRange);
            book.setMaxTtl(market, bad[i]);
            vm.expectRevert(outOfRange);
            book.listMarket(_a, _b, 1, 1, 1, bad[i]);
        }
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.UnknownMarket.selector, bytes32(0)));
        book.setMaxTtl(0, 1);
    }

    /// @dev A leaked key has used up the numbers; the owner gives them back. Nothing that was counted changes, the curve is dead for good.
    function test_SetSeqGivesNumbersBack() external {
        _postDefault();
        _swap(true, 3000e6);
        _swap(false, 1e18);
        ICurveBook.MarketState memory before = book.marketState(market);
        bytes32 slot = bytes32(uint256(keccak256(abi.encode(market, _bookLocation()))) + 1);
        uint256 word = uint256(vm.load(address(book), slot));
        vm.store(address(book), slot, bytes32(word | type(uint32).max));
        Curve memory c = _fresh(_ladder(600_002, 15), _ladder(599_998, 15));
        c.seq = type(uint32).max;
        bytes memory record = bytes.concat(_blockRef(), _fullRecord(market, c));
        vm.prank(CURVE_POSTER);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.StaleSeq.selector, market, c.seq, c.seq));
        book.post(record);

        vm.expectEmit(address(book));
        emit ICurveBook.SeqSet(market, 7);
        vm.prank(OWNER);
        book.setSeq(market, 7);
        (before.seq, before.deadline) = (7, 0);
        assertEq(keccak256(abi.encode(book.marketState(market))), keccak256(abi.encode(before)), "all but two");
        assertEq(_quote(true, 1e6), 0, "asks are dead");
        assertEq(_quote(false, 1e15), 0, "bids are dead");
        record = bytes.concat(_blockRef(), _touchRecord(market, 8, c.deadline, 7));
        vm.prank(CURVE_POSTER);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.CurveExpired.selector, market, 0));
        book.post(record);
        c = _fresh(_ladder(600_002, 15), _ladder(599_998, 15));
        _post(c);
        _expectState(c);
        assertEq(c.seq, 8, "the next number");
        assertEq(_depth(true), 15 * 0.819e18, "asks");
    }

    function test_RevertWhen_SeqIsSetTooHigh() external {
        _postDefault();
        vm.startPrank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.SeqOutOfRange.selector, market, 2, 0, 1));
        book.setSeq(market, 2);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.UnknownMarket.selector, bytes32(0)));
        book.setSeq(0, 0);
        book.setSeq(market, 1);
        assertEq(book.marketState(market).deadline, 0, "ends the curve");
    }

    function test_SetPoster() external {
        vm.expectEmit(address(book));
        emit ICurveBook.PosterSet(STRANGER, true);
        vm.prank(OWNER);
        book.setPoster(STRANGER, true);
        assertTrue(book.isPoster(STRANGER), "added");
        assertTrue(!custodian.isPoster(STRANGER), "only here");
        vm.expectEmit(address(book));
        emit ICurveBook.PosterSet(STRANGER, false);
        vm.prank(OWNER);
        book.setPoster(STRANGER, false);
        assertTrue(!book.isPoster(STRANGER), "removed");
    }

    /// @dev The settler refuses a listed token as target; here it is the other way round.
    function test_RevertWhen_ATokenIsATargetOfSignedOrders() external {
        address[2] memory tokens = [_a, _b];
        for (uint256 i = 0; i < tokens.length; ++i) {
            vm.prank(OWNER);
            settler.setTarget(tokens[i], true);
            vm.prank(OWNER);
            vm.expectRevert(abi.encodeWithSelector(ICurveBook.ForbiddenToken.selector, tokens[i]));
            book.listMarket(_a, _b, 1, 1, 1, 60);
            vm.prank(OWNER);
            vm.expectRevert(abi.encodeWithSelector(ICurveBook.ForbiddenToken.selector, tokens[i]));
            book.listMarket(_b, _a, 1, 1, 1, 60);
            vm.prank(OWNER);
            settler.setTarget(tokens[i], false);
        }
        _list(_a, _b, 1, 1, 1, 60);
    }

    function test_ListsWithoutASettler() external {
        address[8] memory peers = custodianPeers;
        address code = deploy("CurveBook.sol:CurveBook", abi.encode(peers[2], peers[0], address(0)));
        vm.prank(OWNER);
        UUPSUpgradeable(address(book)).upgradeToAndCall(code, "");
        _list(_a, _b, 1, 1, 1, 60);
    }

    function test_RevertWhen_CallerIsNotTheOwner() external {
        bytes memory denied = abi.encodeWithSelector(
            OwnableUpgradeable.OwnableUnauthorizedAccount.selector,
            CURVE_POSTER
        );
        vm.startPrank(CURVE_POSTER);
        vm.expectRevert(denied);
        book.listMarket(_a, _b, 1, 1, 1, 1);
        vm.expectRevert(denied);
        book.setMaxTtl(market, 1);
        vm.expectRevert(denied);
        book.setSeq(market, 0);
        vm.expectRevert(denied);
        book.setPoster(STRANGER, true);
    }

    function test_RevertWhen_ReadingAnUnknownMarket() external {
        bytes memory unknown = abi.encodeWithSelector(ICurveBook.UnknownMarket.selector, bytes32(uint256(7)));
        vm.expectRevert(unknown);
        book.marketState(bytes32(uint256(7)));
        vm.expectRevert(unknown);
        book.curveWords(bytes32(uint256(7)));
        vm.expectRevert();
        book.marketAt(1);
    }

    function _bookLocation() private pure returns (uint256) {
        return uint256(keccak256(abi.encode(uint256(keccak256("curvebook.storage.CurveBook")) - 1))) & ~uint256(0xff);
    }

    function _list(
        address b,
        address q,
        uint256 lot,
        uint256 mantissa,
        uint256 tickLot,
        uint256 ttl
    ) private returns (bytes32) {
        vm.prank(OWNER);
        return book.listMarket(b, q, lot, mantissa, tickLot, ttl);
    }

    function _expectBad(address b, address q, uint256 lot, uint256 mantissa, uint256 tickLot, uint256 ttl) private {
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.BadMarketConfig.selector, b, q, lot, mantissa, tickLot));
        book.listMarket(b, q, lot, mantissa, tickLot, ttl);
    }
}
