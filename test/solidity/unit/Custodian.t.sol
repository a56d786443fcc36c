// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {OwnableUpgradeable} from "@openzeppelin/contracts-upgradeable/access/OwnableUpgradeable.sol";
import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {FeeOnTransferToken, LyingToken, SilentToken} from "../support/HostileTokens.sol";
import {Platform} from "../support/Platform.sol";
import {IMintableToken} from "../support/Interfaces.sol";

/// @notice Deposits, requests, claims and payments.
contract CustodianTest is Platform {
    IMintableToken private _token;
    address private _t;

    function setUp() public override {
        super.setUp();
        _token = _newToken("Token", 18);
        _t = address(_token);
        _deposit(MAKER, _token, 1000);
    }

    /* DEPOSIT */

    function testFuzz_DepositMovesAndReports(address maker, uint128 amount) external {
        vm.assume(maker != address(0) && maker != address(custodian) && amount != 0);
        _token.mint(maker, amount);
        vm.prank(maker);
        _token.approve(address(custodian), amount);
        vm.expectEmit(address(custodian));
        emit ICustodian.Deposited(maker, _t, amount);
        vm.prank(maker);
        custodian.deposit(_t, amount);
        assertEq(_token.balanceOf(address(custodian)), 1000 + uint256(amount), "vault");
        assertEq(custodian.availableLiquidity(_t), 1000 + uint256(amount), "liquidity");
    }

    function test_DepositReportsWhatArrived() external {
        FeeOnTransferToken fee = new FeeOnTransferToken(3);
        fee.mint(STRANGER, 1000);
        vm.startPrank(STRANGER);
        fee.approve(address(custodian), 1000);
        vm.expectEmit(address(custodian));
        emit ICustodian.Deposited(STRANGER, address(fee), 970);
        custodian.deposit(address(fee), 1000);
    }

    function test_DepositOfATokenThatReturnsNothing() external {
        SilentToken silent = new SilentToken();
        silent.mint(STRANGER, 5);
        vm.startPrank(STRANGER);
        silent.approve(address(custodian), 5);
        vm.expectEmit(address(custodian));
        emit ICustodian.Deposited(STRANGER, address(silent), 5);
        custodian.deposit(address(silent), 5);
    }

    function test_RevertWhen_DepositingZero() external {
        vm.expectRevert(ICustodian.ZeroAmount.selector);
        custodian.deposit(_t, 0);
    }

    function test_RevertWhen_NothingArrives() external {
        FeeOnTransferToken greedy = new FeeOnTransferToken(100);
        greedy.mint(STRANGER, 1000);
        LyingToken lying = new LyingToken();
        lying.lie();
        vm.startPrank(STRANGER);
        greedy.approve(address(custodian), 1000);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.NothingReceived.selector, address(greedy)));
        custodian.deposit(address(greedy), 1000);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.NothingReceived.selector, address(lying)));
        custodian.deposit(address(lying), 1000);
    }

    function test_RevertWhen_DepositIsNotApproved() external {
        _token.mint(STRANGER, 10);
        vm.prank(STRANGER);
        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(custodian), 0, 10)
        );
        custodian.deposit(_t, 10);
    }

    /* REQUEST */

    function testFuzz_RequestOnlyAnnounces(address maker, address token, uint256 amount) external {
        vm.assume(amount != 0);
        vm.expectEmit(address(custodian));
        emit ICustodian.WithdrawRequested(maker, token, amount);
        vm.prank(maker);
        custodian.requestWithdraw(token, amount);
        _expectClaim(maker, token, 0, 0, 0);
    }

    function test_RevertWhen_RequestingZero() external {
        vm.expectRevert(ICustodian.ZeroAmount.selector);
        custodian.requestWithdraw(_t, 0);
    }

    /* SETTLE */

    function test_FirstSettlementStartsTheClock() external {
        _expectSettled(MAKER, 300, 0, START + DELAY_SEC);
        _settle(MAKER, 300, 0);
        _expectClaim(MAKER, _t, 300, START + DELAY_SEC, 1);
        assertEq(custodian.totalClaims(_t), 300, "total");
        assertEq(custodian.availableLiquidity(_t), 700, "liquidity");
    }

    function test_RaiseSetsTheAmountAndRestartsTheClock() external {
        _settle(MAKER, 300, 0);
        vm.warp(START + 100);
        _expectSettled(MAKER, 301, 1, START + 100 + DELAY_SEC);
        _settle(MAKER, 301, 1);
        _expectClaim(MAKER, _t, 301, START + 100 + DELAY_SEC, 2);
        assertEq(custodian.totalClaims(_t), 301, "total");
    }

    function testFuzz_LoweringAlwaysSucceedsAndKeepsTheClock(uint256 amount, uint256 basis) external {
        amount = bound(amount, 0, 299);
        _settle(MAKER, 300, 0);
        vm.warp(START + 100);
        vm.prank(OWNER);
        custodian.setWithdrawDelay(5);
        _expectSettled(MAKER, amount, basis, START + DELAY_SEC);
        _settle(MAKER, amount, basis);
        _expectClaim(MAKER, _t, amount, START + DELAY_SEC, 2);
        assertEq(custodian.totalClaims(_t), amount, "total");
    }

    function testFuzz_EqualAmountChangesNothingAndReports(uint256 basis) external {
        _settle(MAKER, 300, 0);
        vm.warp(START + 100);
        _expectSettled(MAKER, 300, basis, START + DELAY_SEC);
        _settle(MAKER, 300, basis);
        _expectClaim(MAKER, _t, 300, START + DELAY_SEC, 1);
        assertEq(custodian.totalClaims(_t), 300, "total");
    }

    /// @dev A zero claim releases the reservation of a request that nothing covers.
    function testFuzz_ZeroSettlementReports(address maker, uint256 basis) external {
        _expectSettled(maker, 0, basis, 0);
        _settle(maker, 0, basis);
        _expectClaim(maker, _t, 0, 0, 0);
    }

    function testFuzz_RevertWhen_RaiseHasAnotherBasis(uint256 basis) external {
        vm.assume(basis != 1);
        _settle(MAKER, 300, 0);
        vm.prank(CLAIM_POSTER);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.StaleBasis.selector, basis, 1));
        custodian.settleWithdraw(MAKER, _t, 301, basis);
    }

    function test_RevertWhen_RaiseIsNotFunded() external {
        _settle(MAKER, 300, 0);
        _settle(STRANGER, 700, 0);
        vm.startPrank(CLAIM_POSTER);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.InsufficientLiquidity.selector, _t, 1, 0));
        custodian.settleWithdraw(MAKER, _t, 301, 1);
        custodian.settleWithdraw(STRANGER, _t, 690, 1);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.InsufficientLiquidity.selector, _t, 11, 10));
        custodian.settleWithdraw(MAKER, _t, 311, 1);
        custodian.settleWithdraw(MAKER, _t, 310, 1);
        assertEq(custodian.availableLiquidity(_t), 0, "all claimed");
    }

    function test_RevertWhen_AmountDoesNotFit() external {
        uint256 most = type(uint128).max;
        _deposit(MAKER, _token, 2 ** 200);
        vm.startPrank(CLAIM_POSTER);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.AmountTooLarge.selector, most + 1, most));
        custodian.settleWithdraw(MAKER, _t, most + 1, 0);
        custodian.settleWithdraw(MAKER, _t, most, 0);
        vm.stopPrank();
        _expectClaim(MAKER, _t, most, START + DELAY_SEC, 1);
    }

    function test_RevertWhen_SettlerIsNotAPoster() external {
        ICustodian.Settlement[] memory none = new ICustodian.Settlement[](0);
        address[3] memory callers = [OWNER, CURVE_POSTER, MAKER];
        for (uint256 i = 0; i < callers.length; ++i) {
            vm.startPrank(callers[i]);
            vm.expectRevert(abi.encodeWithSelector(ICustodian.NotPoster.selector, callers[i]));
            custodian.settleWithdraw(MAKER, _t, 0, 0);
            vm.expectRevert(abi.encodeWithSelector(ICustodian.NotPoster.selector, callers[i]));
            custodian.settleWithdrawBatch(none);
            vm.stopPrank();
        }
    }

    function testFuzz_DelaySaturates(uint256 delaySec) external {
        vm.prank(OWNER);
        custodian.setWithdrawDelay(delaySec);
        _settle(MAKER, 1, 0);
        uint256 last = type(uint64).max;
        _expectClaim(MAKER, _t, 1, delaySec > last - START ? last : START + delaySec, 1);
    }

    function test_BatchSkipsStaleAndUnfundedElements() external {
        _settle(MAKER, 300, 0);
        ICustodian.Settlement[] memory s = new ICustodian.Settlement[](5);
        s[0] = ICustodian.Settlement(MAKER, _t, 301, 0);
        s[1] = ICustodian.Settlement(STRANGER, _t, 701, 0);
        s[2] = ICustodian.Settlement(MAKER, _t, 200, 77);
        s[3] = ICustodian.Settlement(STRANGER, _t, 800, 0);
        s[4] = ICustodian.Settlement(TAKER, _t, 1, 0);
        bytes4 stale = ICustodian.StaleBasis.selector;
        bytes4 unfunded = ICustodian.InsufficientLiquidity.selector;
        vm.expectEmit(address(custodian));
        emit ICustodian.SettlementSkipped(MAKER, _t, 301, 0, stale);
        vm.expectEmit(address(custodian));
        emit ICustodian.SettlementSkipped(STRANGER, _t, 701, 0, unfunded);
        _expectSettled(MAKER, 200, 77, START + DELAY_SEC);
        _expectSettled(STRANGER, 800, 0, START + DELAY_SEC);
        vm.expectEmit(address(custodian));
        emit ICustodian.SettlementSkipped(TAKER, _t, 1, 0, unfunded);
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdrawBatch(s);
        _expectClaim(MAKER, _t, 200, START + DELAY_SEC, 2);
        _expectClaim(STRANGER, _t, 800, START + DELAY_SEC, 1);
        _expectClaim(TAKER, _t, 0, 0, 0);
        assertEq(custodian.totalClaims(_t), 1000, "total");
    }

    function test_RevertWhen_AnAmountOfABatchDoesNotFit() external {
        ICustodian.Settlement[] memory s = new ICustodian.Settlement[](2);
        s[0] = ICustodian.Settlement(MAKER, _t, 1, 0);
        s[1] = ICustodian.Settlement(STRANGER, _t, 2 ** 128, 0);
        vm.prank(CLAIM_POSTER);
        vm.expectRevert(
            abi.encodeWithSelector(ICustodian.AmountTooLarge.selector, uint256(2 ** 128), type(uint128).max)
        );
        custodian.settleWithdrawBatch(s);
    }

    /* EXECUTE */

    function test_ExecutePaysTheWholeClaimOnce() external {
        _settle(MAKER, 300, 0);
        vm.warp(START + DELAY_SEC);
        vm.expectEmit(address(custodian));
        emit ICustodian.WithdrawExecuted(MAKER, _t, 300);
        vm.prank(MAKER);
        custodian.executeWithdraw(_t);
        assertEq(_token.balanceOf(MAKER), 300, "paid");
        assertEq(custodian.totalClaims(_t), 0, "total");
        assertEq(custodian.availableLiquidity(_t), 700, "liquidity");
        _expectClaim(MAKER, _t, 0, 0, 2);
        vm.prank(MAKER);
        vm.expectRevert(ICustodian.NoClaim.selector);
        custodian.executeWithdraw(_t);
    }

    function test_RevertWhen_ClaimIsNotReady() external {
        _settle(MAKER, 300, 0);
        vm.warp(START + DELAY_SEC - 1);
        vm.prank(MAKER);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.ClaimNotReady.selector, START + DELAY_SEC));
        custodian.executeWithdraw(_t);
    }

    function test_RevertWhen_ThereIsNoClaim() external {
        vm.expectRevert(ICustodian.NoClaim.selector);
        custodian.executeWithdraw(_t);
        _settle(MAKER, 300, 0);
        _settle(MAKER, 0, 0);
        vm.warp(START + DELAY_SEC);
        vm.startPrank(MAKER);
        vm.expectRevert(ICustodian.NoClaim.selector);
        custodian.executeWithdraw(_t);
        vm.expectRevert(ICustodian.NoClaim.selector);
        custodian.executeWithdraw(address(base));
    }

    function test_ChangedDelayLeavesSettledClaimsAlone() external {
        _settle(MAKER, 300, 0);
        vm.expectEmit(address(custodian));
        emit ICustodian.WithdrawDelaySet(0);
        vm.prank(OWNER);
        custodian.setWithdrawDelay(0);
        assertEq(custodian.withdrawDelay(), 0, "delay");
        _settle(STRANGER, 10, 0);
        vm.prank(STRANGER);
        custodian.executeWithdraw(_t);
        vm.prank(MAKER);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.ClaimNotReady.selector, START + DELAY_SEC));
        custodian.executeWithdraw(_t);
    }

    /* NOTHING PAYS TWICE, with a delay of zero, the worst case */

    function test_RepeatedSettlementAfterExecutionIsStale() external {
        _noDelay();
        _settle(MAKER, 300, 0);
        _execute(MAKER);
        for (uint256 basis = 0; basis < 2; ++basis) {
            vm.prank(CLAIM_POSTER);
            vm.expectRevert(abi.encodeWithSelector(ICustodian.StaleBasis.selector, basis, 2));
            custodian.settleWithdraw(MAKER, _t, 300, basis);
        }
        _settle(MAKER, 50, 2);
        _expectClaim(MAKER, _t, 50, START, 3);
    }

    function test_RacingSettlementsOnOneBasisTakeEffectOnce() external {
        _noDelay();
        _settle(MAKER, 300, 0);
        vm.prank(CLAIM_POSTER);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.StaleBasis.selector, 0, 1));
        custodian.settleWithdraw(MAKER, _t, 400, 0);
        // The one that lost the race and is lower can only take away.
        _settle(MAKER, 200, 0);
        _expectClaim(MAKER, _t, 200, START, 2);
    }

    function test_LateSettlementAfterALoweringIsStale() external {
        _noDelay();
        _settle(MAKER, 300, 0);
        _settle(MAKER, 0, 1);
        vm.prank(CLAIM_POSTER);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.StaleBasis.selector, 1, 2));
        custodian.settleWithdraw(MAKER, _t, 300, 1);
    }

    /// @dev Any sequence of settlements and executions: the version rises by one with each change, the sum of claims is kept, the
    /// vault covers it, and the maker never gets more than the settlements that took effect allow.
    function testFuzz_ClaimsStateTable(uint256 seed, uint256 delaySec) external {
        uint256[1] memory rng = [seed];
        delaySec = bound(delaySec, 0, 30);
        vm.prank(OWNER);
        custodian.setWithdrawDelay(delaySec);
        uint256 now_ = START;
        Model memory m;
        for (uint256 i = 0; i < 40; ++i) {
            now_ += draw(rng, 0, 20);
            vm.warp(now_);
            if (draw(rng, 0, 3) == 0) _stepExecute(m, now_);
            else _stepSettle(m, draw(rng, 0, 400), draw(rng, 0, 2) == 0 ? draw(rng, 0, 20) : m.basis, now_ + delaySec);
            _expectClaim(MAKER, _t, m.amount, m.readyAt, m.basis);
            assertEq(custodian.totalClaims(_t), m.amount, "total");
            assertEq(_token.balanceOf(MAKER), m.paid, "paid");
            assertEq(custodian.availableLiquidity(_t), 1000 - m.paid - m.amount, "liquidity");
        }
    }

    struct Model {
        uint256 amount;
        uint256 readyAt;
        uint256 basis;
        uint256 paid;
    }

    function _stepExecute(Model memory m, uint256 now_) private {
        vm.prank(MAKER);
        if (m.amount == 0) vm.expectRevert(ICustodian.NoClaim.selector);
        else if (now_ < m.readyAt)
            vm.expectRevert(abi.encodeWithSelector(ICustodian.ClaimNotReady.selector, m.readyAt));
        custodian.executeWithdraw(_t);
        if (m.amount == 0 || now_ < m.readyAt) return;
        m.paid += m.amount;
        (m.amount, m.readyAt, m.basis) = (0, 0, m.basis + 1);
    }

    function _stepSettle(Model memory m, uint256 amount, uint256 basis, uint256 readyAt) private {
        uint256 free = 1000 - m.paid - m.amount;
        vm.prank(CLAIM_POSTER);
        if (amount > m.amount && basis != m.basis) {
            vm.expectRevert(abi.encodeWithSelector(ICustodian.StaleBasis.selector, basis, m.basis));
        } else if (amount > m.amount && amount - m.amount > free) {
            vm.expectRevert(
                abi.encodeWithSelector(ICustodian.InsufficientLiquidity.selector, _t, amount - m.amount, free)
            );
        } else if (amount != m.amount) {
            if (amount > m.amount) m.readyAt = readyAt;
            (m.amount, m.basis) = (amount, m.basis + 1);
        }
        custodian.settleWithdraw(MAKER, _t, amount, basis);
    }

    /* PAY OUT */

    function testFuzz_PayOutNeverTouchesClaims(uint256 claimed, uint256 amount) external {
        claimed = bound(claimed, 0, 1000);
        amount = bound(amount, 0, 2000);
        _settle(MAKER, claimed, 0);
        vm.prank(address(entrypoint));
        if (amount > 1000 - claimed) {
            vm.expectRevert(
                abi.encodeWithSelector(ICustodian.InsufficientLiquidity.selector, _t, amount, 1000 - claimed)
            );
        }
        custodian.payOut(_t, TAKER, amount);
        assertLe(claimed, _token.balanceOf(address(custodian)), "claims stay covered");
    }

    /// @dev Neither what is paid nor what is withheld may be backed by claims, and no sum of both wraps around.
    function testFuzz_WhatIsWithheldMustBeFreeToo(uint256 claimed, uint256 amount, uint256 withheld) external {
        claimed = bound(claimed, 0, 1000);
        amount = bound(amount, 0, 2000);
        withheld = bound(withheld, 0, 2000);
        _settle(MAKER, claimed, 0);
        uint256 free = 1000 - claimed;
        bool refused = amount + withheld > free;
        vm.prank(address(entrypoint));
        if (refused) {
            bytes4 error = ICustodian.InsufficientLiquidity.selector;
            vm.expectRevert(abi.encodeWithSelector(error, _t, amount + withheld, free));
        }
        uint256 left = custodian.payOutWithheld(ICustodian.Payment(_t, TAKER, amount, withheld));
        if (refused) return;
        assertEq(left, free - amount, "what is left");
        assertEq(_token.balanceOf(TAKER), amount, "paid");
        assertEq(_token.balanceOf(address(custodian)), 1000 - amount, "kept");
    }

    function test_RevertWhen_WhatIsWithheldIsBeyondAnySum() external {
        vm.startPrank(address(entrypoint));
        uint256[2] memory amounts = [uint256(1), type(uint256).max];
        for (uint256 i = 0; i < 2; ++i) {
            vm.expectRevert();
            custodian.payOutWithheld(ICustodian.Payment(_t, TAKER, amounts[i], amounts[1 - i]));
        }
        vm.expectRevert(abi.encodeWithSelector(ICustodian.InsufficientLiquidity.selector, _t, type(uint256).max, 1000));
        custodian.payOutWithheld(ICustodian.Payment(_t, TAKER, 1000, type(uint256).max - 1000));
    }

    function test_LiquidityIsZeroWhenClaimsExceedHoldings() external {
        _settle(MAKER, 900, 0);
        // A token may take away from the vault by itself.
        vm.prank(address(custodian));
        _token.transfer(STRANGER, 200);
        assertEq(custodian.availableLiquidity(_t), 0, "liquidity");
        vm.prank(address(entrypoint));
        vm.expectRevert(abi.encodeWithSelector(ICustodian.InsufficientLiquidity.selector, _t, 1, 0));
        custodian.payOut(_t, TAKER, 1);
        _settle(MAKER, 10, 5);
        assertEq(custodian.availableLiquidity(_t), 790, "lowering works regardless");
    }

    function test_RevertWhen_PayOutIsNotFromTheEntrypoint() external {
        address[3] memory callers = [OWNER, CLAIM_POSTER, STRANGER];
        for (uint256 i = 0; i < callers.length; ++i) {
            vm.prank(callers[i]);
            bytes memory refusal = abi.encodeWithSelector(ICustodian.NotEntrypoint.selector, callers[i]);
            vm.expectRevert(refusal);
            custodian.payOut(_t, TAKER, 1);
            vm.prank(callers[i]);
            vm.expectRevert(refusal);
            custodian.payOutWithheld(ICustodian.Payment(_t, TAKER, 1, 0));
        }
    }

    function test_RevertWhen_RecipientIsForbidden() external {
        address[5] memory bad = [address(0), address(custodian), address(book), address(entrypoint), address(settler)];
        vm.startPrank(address(entrypoint));
        for (uint256 i = 0; i < bad.length; ++i) {
            bytes memory refusal = abi.encodeWithSelector(ICustodian.ForbiddenRecipient.selector, bad[i]);
            vm.expectRevert(refusal);
            custodian.payOut(_t, bad[i], 1);
            vm.expectRevert(refusal);
            custodian.payOutWithheld(ICustodian.Payment(_t, bad[i], 1, 0));
        }
    }

    /* OWNER */

    function test_SetPoster() external {
        vm.expectEmit(address(custodian));
        emit ICustodian.PosterSet(STRANGER, true);
        vm.prank(OWNER);
        custodian.setPoster(STRANGER, true);
        assertTrue(custodian.isPoster(STRANGER), "added");
        assertTrue(!book.isPoster(STRANGER), "only here");
        vm.prank(OWNER);
        custodian.setPoster(STRANGER, false);
        assertTrue(!custodian.isPoster(STRANGER), "removed");
    }

    function test_RevertWhen_CallerIsNotTheOwner() external {
        bytes memory denied = abi.encodeWithSelector(
            OwnableUpgradeable.OwnableUnauthorizedAccount.selector,
            CLAIM_POSTER
        );
        vm.startPrank(CLAIM_POSTER);
        vm.expectRevert(denied);
        custodian.setWithdrawDelay(0);
        vm.expectRevert(denied);
        custodian.setPoster(STRANGER, true);
    }

    /* HELPERS */

    function _settle(address maker, uint256 amount, uint256 basis) private {
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(maker, _t, amount, basis);
    }

    function _execute(address maker) private {
        vm.prank(maker);
        custodian.executeWithdraw(_t);
    }

    function _noDelay() private {
        vm.prank(OWNER);
        custodian.setWithdrawDelay(0);
    }

    function _expectSettled(address maker, uint256 amount, uint256 basis, uint256 readyAt) private {
        vm.expectEmit(address(custodian));
        emit ICustodian.WithdrawSettled(maker, _t, amount, basis, uint64(readyAt));
    }

    function _expectClaim(address maker, address token, uint256 amount, uint256 readyAt, uint256 basis) private view {
        (uint256 a, uint64 r) = custodian.claim(maker, token);
        assertEq(a, amount, "claim");
        assertEq(r, readyAt, "readyAt");
        assertEq(custodian.claimBasis(maker, token), basis, "basis");
    }
}
