// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {VaultClaims} from "../support/VaultClaims.sol";

/// @notice Claims: settled, lowered, raised, executed.
contract CustodianClaimsTest is VaultClaims {
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
}
