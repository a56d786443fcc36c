// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {OwnableUpgradeable} from "@openzeppelin/contracts-upgradeable/access/OwnableUpgradeable.sol";
import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {BonusToken, FeeOnTransferToken, LyingToken, SilentToken} from "../support/HostileTokens.sol";
import {VaultClaims} from "../support/VaultClaims.sol";

/// @notice What goes into the vault and out of it, what is only announced, and who may do what.
contract CustodianTest is VaultClaims {
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

    /// @dev Whatever else reaches the vault in the same call is not the maker's.
    function test_DepositReportsNoMoreThanWasGiven() external {
        BonusToken bonus = new BonusToken();
        bonus.mint(STRANGER, 1000);
        vm.startPrank(STRANGER);
        bonus.approve(address(custodian), 1000);
        vm.expectEmit(address(custodian));
        emit ICustodian.Deposited(STRANGER, address(bonus), 1000);
        custodian.deposit(address(bonus), 1000);
        assertEq(bonus.balanceOf(address(custodian)), 1100, "vault");
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
        address[] memory bad = _forbiddenRecipients();
        vm.startPrank(address(entrypoint));
        for (uint256 i = 0; i < bad.length; ++i) {
            assertTrue(custodian.isForbiddenRecipient(bad[i]), "says so");
            bytes memory refusal = abi.encodeWithSelector(ICustodian.ForbiddenRecipient.selector, bad[i]);
            vm.expectRevert(refusal);
            custodian.payOut(_t, bad[i], 1);
            vm.expectRevert(refusal);
            custodian.payOutWithheld(ICustodian.Payment(_t, bad[i], 1, 0));
        }
    }

    /// @dev What is looked at first are the last two bytes, each by itself.
    function testFuzz_WhoEndsLikeAForbiddenRecipientIsPaid(uint256 last, uint256 next, uint256 rest) external {
        address[] memory bad = _forbiddenRecipients();
        uint256 lastByte = uint160(bad[bound(last, 0, bad.length - 1)]) & 0xff;
        uint256 nextByte = uint160(bad[bound(next, 0, bad.length - 1)]) & 0xff00;
        address to = address(uint160(bound(rest, 1, 2 ** 144 - 1) << 16) | uint160(nextByte | lastByte));
        for (uint256 i = 0; i < bad.length; ++i) vm.assume(to != bad[i]);
        vm.assume(to != MAKER);
        assertTrue(!custodian.isForbiddenRecipient(to), "no contract of ours");
        vm.startPrank(address(entrypoint));
        custodian.payOut(_t, to, 1);
        custodian.payOutWithheld(ICustodian.Payment(_t, to, 1, 0));
        vm.stopPrank();
        assertEq(_token.balanceOf(to), 2, "paid");
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.NotEntrypoint.selector, STRANGER));
        custodian.payOut(_t, to, 1);
    }

    /// @dev Of each forbidden recipient every other address that differs in one bit.
    function test_NeighboursOfForbiddenRecipientsArePaid() external {
        address[] memory bad = _forbiddenRecipients();
        vm.startPrank(address(entrypoint));
        for (uint256 i = 0; i < bad.length; ++i) {
            for (uint256 bit = 0; bit < 160; bit += 13) {
                address to = address(uint160(bad[i]) ^ uint160(1 << bit));
                custodian.payOut(_t, to, 1);
                assertEq(_token.balanceOf(to), 1, "paid");
            }
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
}
