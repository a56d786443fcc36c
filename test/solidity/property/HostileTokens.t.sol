// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {ChangelingToken, Mischief} from "../support/ChangelingToken.sol";
import {Orders} from "../support/Orders.sol";
import {Vm} from "../support/Test.sol";

/// @notice Whatever a token does, what the events credit to makers and takers never exceeds what the vault got. So nobody is credited at
/// the cost of anybody else; the worst that a token can do is to revert, or to hurt those who traded it.
contract HostileTokensTest is Orders {
    ChangelingToken private _token;
    Mischief private _mischief;
    /// @dev Of the token: what the events of this test add to the vault, less what they take from it.
    uint256 private _credited;
    uint256 private _debited;

    uint256 private constant SOME = 1_000_000e6;

    function _start(ChangelingToken.Kind kind) private {
        _token = new ChangelingToken(kind);
        _mischief = new Mischief();
        vm.prank(OWNER);
        bytes32 id = book.listMarket(address(base), address(_token), 14, 1, 0, MAX_TTL_SEC);
        _post(_fullRecord(id, Curve(1, uint32(START + MAX_TTL_SEC), 0, 0, _ladder(600_002, 15), _ladder(599_998, 15))));
        address[6] memory holders = [MAKER, TAKER, signer, address(_mischief), address(exchange), STRANGER];
        for (uint256 i = 0; i < holders.length; ++i) {
            _token.mint(holders[i], SOME);
            _approve(holders[i], address(custodian));
            _approve(holders[i], address(entrypoint));
            _approve(holders[i], address(permit2));
        }
        base.mint(address(_mischief), 10 ** 24);
        _mischief.approve(address(base), address(entrypoint));
        _mischief.hook(_token);
        (_credited, _debited) = (0, 0);
        vm.recordLogs();
        vm.prank(MAKER);
        try custodian.deposit(address(_token), SOME) {} catch {}
        _settleUp();
    }

    function _approve(address account, address spender) private {
        vm.prank(account);
        (bool done, ) = address(_token).call(abi.encodeWithSignature("approve(address,uint256)", spender, 2 ** 255));
        assertTrue(done, "approve");
    }

    /* ANY SEQUENCE */

    function testFuzz_CreditsNeverExceedTheVault(uint256 seed, uint8 kind) external {
        _start(ChangelingToken.Kind(kind % 8));
        uint256[1] memory rng = [seed];
        for (uint256 i = 0; i < 10; ++i) {
            vm.recordLogs();
            _act(rng);
            _settleUp();
            uint256 held = _token.balanceOf(address(custodian));
            assertLe(_credited, held + _debited, "credits are covered");
            assertLe(custodian.totalClaims(address(_token)), held, "claims are covered");
            assertEq(_token.balanceOf(address(settler)) + _token.balanceOf(address(entrypoint)), 0, "nothing between");
            assertLe(10 ** 30, base.balanceOf(address(custodian)) + 15 * 0.819e18, "no more base than was posted");
        }
    }

    /// @dev The token's own gifts and losses hit the vault as a whole: claims stay as they are, and what is free follows the balance.
    function testFuzz_RebasesChangeOnlyWhatIsFree(uint256 seed, uint256 percent) external {
        _start(ChangelingToken.Kind.Plain);
        uint256[1] memory rng = [seed];
        uint256 claim = draw(rng, 1, SOME);
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(STRANGER, address(_token), claim, 0);
        _token.rebase(bound(percent, 1, 300));
        uint256 held = _token.balanceOf(address(custodian));
        (uint256 amount, ) = custodian.claim(STRANGER, address(_token));
        assertEq(amount, claim, "claim");
        assertEq(custodian.totalClaims(address(_token)), claim, "total");
        uint256 free = held > claim ? held - claim : 0;
        assertEq(custodian.availableLiquidity(address(_token)), free, "free");
        for (uint256 i = 0; i < 6; ++i) _act(rng);
        if (held >= claim) assertLe(claim, _token.balanceOf(address(custodian)) + 10, "still covered, up to rounding");
        vm.warp(START + DELAY_SEC);
        bool short = _token.balanceOf(address(custodian)) < claim;
        vm.prank(STRANGER);
        if (short) vm.expectRevert(ChangelingToken.Insufficient.selector);
        custodian.executeWithdraw(address(_token));
    }

    /* ONE BY ONE */

    /// @dev What Permit2 brings for a signed order is measured as well as what a taker sends, fee included.
    function test_OrderWhoseInputArrivesShortIsRefused() external {
        _start(ChangelingToken.Kind.FeeOnTransfer);
        IOrderSettler.Order memory order = _sign(_order(address(_token), address(base), 300e6, 0));
        vm.expectRevert(
            abi.encodeWithSelector(
                IEntrypoint.InsufficientReceived.selector,
                address(_token),
                uint256(294e6),
                uint256(300e6)
            )
        );
        vm.prank(EXECUTOR);
        settler.fillOnCurve(1e6, order);
    }

    function test_EachTokenWorksOrIsRefused() external {
        uint256 price = 300.001e6;
        for (uint256 k = 0; k < 8; ++k) {
            ChangelingToken.Kind kind = ChangelingToken.Kind(k);
            _start(kind);
            bool lies = kind == ChangelingToken.Kind.Lying;
            bool charges = kind == ChangelingToken.Kind.FeeOnTransfer || kind == ChangelingToken.Kind.FeeAndHook;
            uint256 arrives =
                lies
                    ? 0
                    : charges
                        ? (SOME * 98) / 100
                        : SOME;
            assertEq(_token.balanceOf(address(custodian)), arrives, "deposited");
            assertEq(_credited, arrives, "credited");

            vm.startPrank(TAKER);
            if (lies || charges) {
                uint256 got = lies ? 0 : price - price / 50;
                vm.expectRevert(
                    abi.encodeWithSelector(IEntrypoint.InsufficientReceived.selector, address(_token), got, price)
                );
            }
            entrypoint.swap(address(_token), address(base), price, 0, TAKER, START);
            uint256 before = _token.balanceOf(TAKER);
            if (lies) {
                vm.expectRevert(
                    abi.encodeWithSelector(
                        ICustodian.InsufficientLiquidity.selector,
                        address(_token),
                        uint256(299.999e6),
                        0
                    )
                );
            }
            uint256 paid = entrypoint.swap(address(base), address(_token), 0.1e18, 0, TAKER, START);
            vm.stopPrank();
            if (lies) continue;
            assertEq(paid, 299.999e6, "paid");
            assertEq(_token.balanceOf(TAKER) - before, charges ? paid - paid / 50 : paid, "received");

            vm.prank(CLAIM_POSTER);
            custodian.settleWithdraw(MAKER, address(_token), 100e6, 0);
            vm.warp(START + DELAY_SEC);
            before = _token.balanceOf(MAKER);
            vm.prank(MAKER);
            custodian.executeWithdraw(address(_token));
            assertEq(_token.balanceOf(MAKER) - before, charges ? 98e6 : 100e6, "withdrawn");
            vm.warp(START);
        }
    }

    /// @dev Neither the vault nor others suffer when a maker can't be paid; it can be paid as soon as the token allows.
    function test_ABlacklistedMakerKeepsItsClaim() external {
        _start(ChangelingToken.Kind.Blacklist);
        ICustodian.Settlement[] memory s = new ICustodian.Settlement[](2);
        s[0] = ICustodian.Settlement(MAKER, address(_token), 100e6, 0);
        s[1] = ICustodian.Settlement(STRANGER, address(_token), 100e6, 0);
        _token.blacklist(MAKER, true);
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdrawBatch(s);
        vm.warp(START + DELAY_SEC);
        vm.prank(MAKER);
        vm.expectRevert(abi.encodeWithSelector(ChangelingToken.Blacklisted.selector, MAKER));
        custodian.executeWithdraw(address(_token));
        vm.prank(STRANGER);
        custodian.executeWithdraw(address(_token));
        (uint256 amount, ) = custodian.claim(MAKER, address(_token));
        assertEq(amount, 100e6, "kept");
        _token.blacklist(MAKER, false);
        vm.prank(MAKER);
        custodian.executeWithdraw(address(_token));
    }

    /// @dev A blacklisted recipient of a swap, or a blacklisted vault, means that the swap reverts whole.
    function test_BlacklistedSwapsRevertWhole() external {
        _start(ChangelingToken.Kind.Blacklist);
        address[2] memory listed = [RECIPIENT, address(custodian)];
        for (uint256 i = 0; i < 2; ++i) {
            _token.blacklist(listed[i], true);
            bytes memory refusal = abi.encodeWithSelector(ChangelingToken.Blacklisted.selector, listed[i]);
            uint256 quoted = entrypoint.quote(address(base), address(_token), 1e18);
            vm.prank(TAKER);
            vm.expectRevert(refusal);
            entrypoint.swap(address(base), address(_token), 1e18, 0, RECIPIENT, START);
            IOrderSettler.Order memory order = _sign(_order(address(base), address(_token), 1e18, 0));
            vm.prank(EXECUTOR);
            vm.expectRevert(refusal);
            settler.fillOnCurve(0, order);
            assertEq(entrypoint.quote(address(base), address(_token), 1e18), quoted, "nothing was taken");
            assertEq(base.balanceOf(signer), 10 ** 30, "nor paid");
        }
    }

    /* ACTIONS */

    function _act(uint256[1] memory rng) private {
        uint256 what = draw(rng, 0, 12);
        uint256 amount = draw(rng, 1, draw(rng, 1, 1000e6));
        if (what == 12) {
            // From inside a hook of the next action's token.
            (address target, bytes memory data) = _mischievous(draw(rng, 0, 5), amount);
            _mischief.plan(target, data);
            what = draw(rng, 0, 5);
        }
        if (what < 6) {
            (address target, bytes memory data) = _mischievous(what, amount);
            _mischief.run(target, data);
        } else if (what == 6) {
            _settle(rng, amount);
        } else if (what == 7) {
            vm.prank(MAKER);
            try custodian.executeWithdraw(address(_token)) {} catch {}
        } else {
            _tryOrder(what, amount, rng);
        }
    }

    /// @dev What the mischievous account may call.
    function _mischievous(uint256 what, uint256 amount) private view returns (address target, bytes memory data) {
        address me = address(_mischief);
        address t = address(_token);
        uint256 inBase = amount * 3e8;
        if (what == 0) return (address(custodian), abi.encodeCall(ICustodian.deposit, (t, amount)));
        if (what == 1) return (address(custodian), abi.encodeCall(ICustodian.executeWithdraw, (t)));
        target = address(entrypoint);
        if (what == 2) data = abi.encodeCall(IEntrypoint.swap, (t, address(base), amount, 0, me, START));
        if (what == 3) data = abi.encodeCall(IEntrypoint.swap, (address(base), t, inBase, 0, me, START));
        if (what == 4)
            data = abi.encodeCall(IEntrypoint.swapExactOutput, (t, address(base), inBase, 2 ** 200, me, START));
        if (what == 5)
            data = abi.encodeCall(IEntrypoint.swapExactOutput, (address(base), t, amount, 2 ** 200, me, START));
    }

    function _settle(uint256[1] memory rng, uint256 amount) private {
        address[2] memory makers = [MAKER, address(_mischief)];
        address maker = makers[draw(rng, 0, 1)];
        uint256 basis = custodian.claimBasis(maker, address(_token));
        vm.prank(OWNER);
        custodian.setWithdrawDelay(0);
        vm.prank(CLAIM_POSTER);
        try custodian.settleWithdraw(maker, address(_token), amount, basis) {} catch {}
    }

    function _tryOrder(uint256 what, uint256 amount, uint256[1] memory rng) private {
        bool sells = draw(rng, 0, 1) == 0;
        (address tokenIn, address tokenOut) = sells
            ? (address(_token), address(base))
            : (address(base), address(_token));
        uint256 amountIn = sells ? amount : amount * 3e8;
        uint256 fee = draw(rng, 0, amountIn / 3);
        uint256 minimum = what == 9 ? 1 : 0;
        IOrderSettler.Order memory order = _order(tokenIn, tokenOut, amountIn, minimum);
        if (draw(rng, 0, 1) == 0) order.recipient = address(_mischief);
        order = _sign(order);
        vm.startPrank(EXECUTOR);
        if (what < 9) {
            try settler.fillOnCurve(fee, order) {} catch {}
        } else if (what == 9) {
            try settler.fillOnCurveExactOut(fee, order) {} catch {}
        } else {
            IOrderSettler.Route memory route = _route(amountIn, fee);
            uint256 rest = amountIn - fee;
            if (what == 11) route.ownAmount = rest / 2;
            route = _via(route, tokenIn, rest / 3, rest / 3, tokenOut, sells ? 1e9 : 1);
            try settler.fillRoute(order, route) {} catch {}
        }
        vm.stopPrank();
    }

    /* BOOKS */

    /// @dev Books what the events of the last action say of the token, as the ledger does.
    function _settleUp() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            bytes32 topic = logs[i].topics[0];
            if (topic == ICustodian.Deposited.selector) _credited += abi.decode(logs[i].data, (uint256));
            else if (topic == ICustodian.WithdrawExecuted.selector) _debited += abi.decode(logs[i].data, (uint256));
            else if (topic == IEntrypoint.Swap.selector) _bookSwap(abi.decode(logs[i].data, (SwapLog)));
            else if (topic == IOrderSettler.OrderFilled.selector) _bookFee(logs[i].data);
        }
    }

    function _bookSwap(SwapLog memory log) private {
        if (log.isBuy) _credited += log.quoteAmount + log.inputFee;
        else _debited += log.quoteAmount - log.fee;
    }

    function _bookFee(bytes memory data) private {
        (address tokenIn, , , , uint256 fee, bool feeInSwap) = abi.decode(
            data,
            (address, address, uint256, uint256, uint256, bool)
        );
        if (!feeInSwap && tokenIn == address(_token)) _credited += fee;
    }
}
