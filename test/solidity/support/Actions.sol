// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {Curves} from "./Curves.sol";
import {Platform} from "./Platform.sol";

/// @notice What takers, posters, makers and the owner may do, in any order and with any values. Each action checks its own effect, and
/// keeps a plain account of what should have happened, which invariants compare with the contracts.
abstract contract Actions is Platform {
    /// @dev Base units of the asks and the bids of the live curve, as posted.
    uint256[2] internal posted;
    /// @dev Cumulative base units that the live curve reflects, those from which on its consumption counts (modulo 2^256), and those taken in
    /// all.
    uint256[2] internal reflected;
    uint256[2] internal snap;
    uint256[2] internal taken;
    /// @dev Fills since the market was listed.
    uint256 internal fills;
    /// @dev What the vault should hold of base and quote, and the sum of its claims.
    uint256[2] internal held;
    uint256[2] internal claimed;

    address[2] internal makers = [MAKER, STRANGER];
    uint256[6] private _counts = [uint256(31), 15, 7, 6, 1, 0];

    function setUp() public virtual override {
        super.setUp();
        held = [uint256(10 ** 30), 10 ** 30];
        _go(_ladder(600_002, 15), _ladder(599_998, 15), [uint256(0), 0], 0);
        // A maker with claims on all but a little, so that liquidity is sometimes what ends.
        _deposit(STRANGER, base, 10 ** 18);
        held[0] += 10 ** 18;
    }

    /* TAKERS */

    function swap(uint256 amount, bool isBuy, bool exactOut) external {
        _trade(_size(amount, isBuy == exactOut), isBuy, exactOut);
    }

    /// @dev Exactly what is left of a side, and one unit more.
    function swapAll(bool isBuy, bool more) external {
        uint256 left = _left(isBuy ? 0 : 1);
        _trade(more ? left + 1 : left, isBuy, isBuy);
    }

    /// @dev The same trade whole and in two parts: the parts never come out better.
    function split(uint256 a, uint256 b, bool isBuy) external {
        (a, b) = (_size(a, !isBuy), _size(b, !isBuy));
        uint256 whole = _quote(isBuy, a + b);
        if (whole == 0) return;
        uint256 rate = _rate();
        uint256 parts = _trade(a, isBuy, false) + _trade(b, isBuy, false);
        // Each fee is rounded down by itself, which is worth less than a unit.
        assertLe(parts, whole - (whole * rate) / 1e6 + 1, "no more in parts");
    }

    /// @dev There and back on one curve.
    function roundTrip(uint256 amount, bool isBuy) external {
        amount = _size(amount, !isBuy);
        uint256[2] memory before = [base.balanceOf(TAKER), quote.balanceOf(TAKER)];
        uint256 got = _trade(amount, isBuy, false);
        if (got == 0 || _trade(got, !isBuy, false) == 0) return;
        assertLe(base.balanceOf(TAKER), before[0], "no base gained");
        assertLe(quote.balanceOf(TAKER), before[1], "no quote gained");
    }

    /* POSTERS */

    /// @dev A snapshot may be as old as the last one, or as new as the present.
    function post(uint256 seed, bool stale) external {
        uint256[1] memory rng = [seed];
        uint256[2] memory reflects = _reflects(rng);
        uint256[] memory asks = _ladder(600_002 + draw(rng, 0, 40), _counts[draw(rng, 0, 5)]);
        uint256[] memory bids = _ladder(599_998 - draw(rng, 0, 40), _counts[draw(rng, 0, 5)]);
        if (stale) _postStale(asks, bids);
        else _go(asks, bids, reflects, draw(rng, 0, 255));
    }

    /// @dev New words of one side, of any number; the other side stays.
    function postPartial(uint256 seed, bool ask) external {
        if (_expired()) return;
        uint256[1] memory rng = [seed];
        uint256 count = _counts[draw(rng, 0, 5)];
        uint256[] memory words =
            ask ? _ladder(600_002 + draw(rng, 0, 40), count) : _ladder(599_998 - draw(rng, 0, 40), count);
        uint256 side = ask ? 0 : 1;
        uint256[2] memory reflects = _reflects(rng);
        uint256 exact = draw(rng, 0, 255);
        Curve memory c = _fresh(words, words);
        (c.snapAsk, c.snapBid) = (_volume(exact / 16, reflects[0]), _volume(exact % 16, reflects[1]));
        uint256 mask = count == 0 ? 1 : (1 << words.length) - 1;
        _post(_partialRecord(c, uint8(ask ? mask * 16 : mask), count == 0 ? new uint256[](1) : words));
        posted[side] = count * 8190 * LOT_UNITS;
        _enter(reflects, exact);
    }

    function touch(uint256 ttl) external {
        if (_expired()) return;
        uint256 seq = book.marketState(market).seq;
        uint32 deadline = uint32(block.timestamp + bound(ttl, 1, MAX_TTL_SEC));
        _post(_touchRecord(market, uint32(seq + 1), deadline, uint32(seq)));
    }

    /// @dev Fills and posts that the chain drops. A curve made from a dropped block never lands, and one that reflects dropped fills sells
    /// nothing on their side until the chain has caught up.
    function reorganise(uint256 seed, uint256 amount, bool isBuy) external {
        uint256 common = block.number - 1;
        bytes memory ref = abi.encodePacked(uint48(common), bytes12(blockhash(common)));
        uint256 state = vm.snapshotState();
        uint256 filled = _trade(_size(amount, isBuy), isBuy, isBuy);
        uint256[2] memory seen = taken;
        vm.roll(block.number + 1);
        bytes memory dropped = _blockRef();
        assertTrue(vm.revertToState(state), "reverted");
        vm.roll(block.number + 1);
        vm.setBlockhash(block.number - 1, keccak256(abi.encode(seed, block.number)));

        Curve memory c = _fresh(_ladder(600_002, 15), _ladder(599_998, 15));
        (c.snapAsk, c.snapBid) = (uint96(seen[0]), uint96(seen[1]));
        bytes memory record = _fullRecord(market, c);
        vm.prank(CURVE_POSTER);
        try book.post(bytes.concat(dropped, record)) {
            revert("landed from a dropped block");
        } catch (bytes memory reason) {
            assertEq(bytes32(bytes4(reason)), bytes32(ICurveBook.OrphanedBlock.selector), "orphaned");
        }
        if (filled == 0) return;
        vm.prank(CURVE_POSTER);
        book.post(bytes.concat(ref, record));
        posted = [15 * 8190 * LOT_UNITS, 15 * 8190 * LOT_UNITS];
        _enter(seen, 0);
        assertEq(_depth(isBuy), 0, "nothing to sell");
    }

    /* MAKERS */

    function deposit(uint256 amount, bool inBase, uint256 who) external {
        amount = bound(amount, 1, 10 ** 24);
        _deposit(makers[who % 2], inBase ? base : quote, amount);
        held[inBase ? 0 : 1] += amount;
    }

    function settle(uint256 amount, bool inBase, uint256 who, bool lower) external {
        (address maker, address token) = (makers[who % 2], address(inBase ? base : quote));
        (uint256 now_, ) = custodian.claim(maker, token);
        uint256 free = custodian.availableLiquidity(token);
        amount = lower ? bound(amount, 0, now_) : bound(amount, now_, now_ + free);
        uint256 basis = custodian.claimBasis(maker, token);
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(maker, token, amount, basis);
        claimed[inBase ? 0 : 1] = claimed[inBase ? 0 : 1] + amount - now_;
    }

    /// @dev One unit more than is free.
    function settleTooMuch(bool inBase, uint256 who) external {
        (address maker, address token) = (makers[who % 2], address(inBase ? base : quote));
        (uint256 now_, ) = custodian.claim(maker, token);
        uint256 free = custodian.availableLiquidity(token);
        uint256 basis = custodian.claimBasis(maker, token);
        vm.prank(CLAIM_POSTER);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.InsufficientLiquidity.selector, token, free + 1, free));
        custodian.settleWithdraw(maker, token, now_ + free + 1, basis);
    }

    function execute(bool inBase, uint256 who) external {
        (address maker, address token) = (makers[who % 2], address(inBase ? base : quote));
        (uint256 amount, uint64 readyAt) = custodian.claim(maker, token);
        vm.prank(maker);
        if (amount == 0) vm.expectRevert(ICustodian.NoClaim.selector);
        else if (block.timestamp < readyAt)
            vm.expectRevert(abi.encodeWithSelector(ICustodian.ClaimNotReady.selector, readyAt));
        custodian.executeWithdraw(token);
        if (amount == 0 || block.timestamp < readyAt) return;
        held[inBase ? 0 : 1] -= amount;
        claimed[inBase ? 0 : 1] -= amount;
    }

    /* THE OWNER, AND TIME */

    /// @dev What the taker pays in this market, in parts per million.
    function _rate() private view returns (uint256) {
        return book.marketState(market).chargesFees ? entrypoint.takerFee(TAKER) : 0;
    }

    function setFee(uint256 rate, bool charged) external {
        vm.startPrank(OWNER);
        entrypoint.setTakerFee(TAKER, bound(rate, 0, 10_000));
        book.setTakerFees(market, charged);
        vm.stopPrank();
    }

    function setDelay(uint256 delaySec) external {
        vm.prank(OWNER);
        custodian.setWithdrawDelay(bound(delaySec, 0, 100));
    }

    function wait(uint256 sec) external {
        vm.roll(block.number + 1);
        vm.warp(block.timestamp + bound(sec, 1, 40));
    }

    /* HELPERS */

    /// @dev A snapshot from between the last one and the present; one that was ahead of the chain is given up.
    function _reflects(uint256[1] memory rng) private view returns (uint256[2] memory volumes) {
        for (uint256 i = 0; i < 2; ++i) {
            volumes[i] = draw(rng, reflected[i] < taken[i] ? reflected[i] : taken[i], taken[i]);
        }
    }

    function _expired() internal view returns (bool) {
        return block.timestamp >= book.marketState(market).deadline;
    }

    /// @dev A snapshot ahead of the chain leaves nothing.
    function _left(uint256 side) internal view returns (uint256) {
        uint256 consumed = _consumed(side);
        return posted[side] > consumed ? posted[side] - consumed : 0;
    }

    function _consumed(uint256 side) private view returns (uint256) {
        unchecked {
            return (taken[side] - snap[side]) % 2 ** 92;
        }
    }

    /// @dev The live curve is one that reflects these volumes, and is the book itself on `exact / 16` segments of asks and `exact % 16` of bids.
    function _enter(uint256[2] memory reflects, uint256 exact) private {
        (reflected, snap) = (reflects, reflects);
        for (uint256 i = 0; i < 2; ++i) {
            unchecked {
                snap[i] = taken[i] - _enteredLadder(posted[i], i == 0 ? exact / 16 : exact % 16, _consumed(i));
            }
        }
    }

    function _size(uint256 amount, bool inBase) private pure returns (uint256) {
        uint256 most = inBase ? 20e18 : 60_000e6;
        return 1 + ((amount >> 8) % (most >> (amount % (inBase ? 64 : 35))));
    }

    function _go(uint256[] memory asks, uint256[] memory bids, uint256[2] memory reflects, uint256 exact) private {
        Curve memory c = _fresh(asks, bids);
        (c.snapAsk, c.snapBid) = (_volume(exact / 16, reflects[0]), _volume(exact % 16, reflects[1]));
        _post(c);
        posted = [Curves.depth(asks, true, LOT_UNITS), Curves.depth(bids, false, LOT_UNITS)];
        _enter(reflects, exact);
    }

    /// @dev A post that comes late changes nothing, in a batch either.
    function _postStale(uint256[] memory asks, uint256[] memory bids) private {
        Curve memory c = _fresh(asks, bids);
        c.seq -= 1;
        bytes memory data = bytes.concat(_blockRef(), _fullRecord(market, c));
        bytes32 before = keccak256(abi.encode(book.marketState(market)));
        vm.startPrank(CURVE_POSTER);
        assertEq(book.postBatch(data), 0, "skipped");
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.StaleSeq.selector, market, c.seq, c.seq));
        book.post(data);
        vm.stopPrank();
        assertEq(keccak256(abi.encode(book.marketState(market))), before, "nothing changed");
    }

    /// @return result What the swap returned, zero if the market refused it, which its quote must have said.
    function _trade(uint256 amount, bool isBuy, bool exactOut) private returns (uint256 result) {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        uint256 rate = _rate();
        uint256 gross = exactOut ? _grossFor(amount, rate) : amount;
        uint256 quoted = exactOut ? _quoteExactOutput(isBuy, gross) : _quote(isBuy, gross);
        bytes32 before = _fingerprint();
        vm.recordLogs();
        try this.order(tokenIn, tokenOut, amount, exactOut) returns (uint256 got) {
            result = got;
        } catch (bytes memory reason) {
            assertEq(quoted, 0, "refused what it quoted");
            assertEq(_fingerprint(), before, "refused and nothing changed");
            _checkReason(reason);
            return 0;
        }
        assertEq(result, exactOut ? quoted : quoted - (quoted * rate) / 1e6, "as quoted");
        _book(isBuy, exactOut ? result : amount, exactOut ? amount : result);
    }

    /// @dev Called by this contract itself, so that a refusal can be caught.
    function order(address tokenIn, address tokenOut, uint256 amount, bool exactOut) external returns (uint256) {
        vm.prank(TAKER);
        if (exactOut)
            return entrypoint.swapExactOutput(tokenIn, tokenOut, amount, type(uint256).max, TAKER, block.timestamp);
        return entrypoint.swap(tokenIn, tokenOut, amount, 0, TAKER, block.timestamp);
    }

    function _book(bool isBuy, uint256 amountIn, uint256 amountOut) private {
        SwapLog memory log = _lastSwap();
        uint256 side = isBuy ? 0 : 1;
        assertEq(log.consumedBefore, _consumed(side), "consumed before");
        assertLe(log.consumedBefore + log.baseAmount, posted[side], "no more than was posted");
        assertEq(log.fillSeq, ++fills, "fill number");
        assertEq(amountIn, isBuy ? log.quoteAmount : log.baseAmount, "input");
        assertEq(amountOut + log.fee, isBuy ? log.baseAmount : log.quoteAmount, "output");
        taken[side] += log.baseAmount;
        (uint256 into, uint256 outOf) = isBuy ? (1, 0) : (0, 1);
        held[into] += amountIn;
        held[outOf] -= amountOut;
    }

    /// @dev The smallest gross that leaves `net`, found by going up from a little below.
    function _grossFor(uint256 net, uint256 rate) private pure returns (uint256 gross) {
        if (net == 0 || rate == 0) return net;
        gross = (net * 1e6) / (1e6 - rate);
        gross = gross > 2 ? gross - 2 : 0;
        while (gross - (gross * rate) / 1e6 < net) ++gross;
    }

    function _checkReason(bytes memory reason) private pure {
        bytes4 name = bytes4(reason);
        bool known =
            name == ICurveBook.InsufficientDepth.selector ||
                name == ICurveBook.CurveExpired.selector ||
                name == ICurveBook.ZeroOutput.selector ||
                name == ICurveBook.ZeroAmount.selector ||
                name == ICustodian.InsufficientLiquidity.selector;
        assertTrue(known, "refused by name");
    }

    function _fingerprint() private view returns (bytes32) {
        return
            keccak256(
                abi.encode(
                    book.marketState(market),
                    base.balanceOf(address(custodian)),
                    quote.balanceOf(address(custodian)),
                    base.balanceOf(TAKER),
                    quote.balanceOf(TAKER)
                )
            );
    }
}
