// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {Tokens} from "../../../contracts/libraries/Tokens.sol";
import {FailsWithTwoWords, FallsSilent, Refusing} from "../support/HostileTokens.sol";
import {SignatureTransfers} from "../support/SignatureTransfers.sol";
import {SettlerOrders} from "../support/SettlerOrders.sol";

/// @notice Signed orders by the curve alone: what they take and deliver, what the signature binds, and who may do what.
contract OrderSettlerTest is SettlerOrders {
    /* BY THE CURVE ALONE */

    function test_SellsAllButTheFee() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 2900e6);
        uint256 expected = _quote(false, 0.99e18);
        _expectFilled(order, 1e18, expected, 0.01e18, true);
        vm.recordLogs();
        (uint256 amountIn, uint256 amountOut) = _fill(order, false, 0.01e18);
        assertEq(amountIn, 1e18, "in");
        assertEq(amountOut, expected, "out");
        _expectChanges(false, 1e18, 1e18, expected, expected);
        SwapLog memory log = _lastSwap();
        assertEq(log.inputFee, 0.01e18, "input fee");
        assertEq(log.baseAmount, 0.99e18, "sold");
        assertEq(log.fee, 0, "no taker fee");
    }

    function test_BuysExactlyWhatWasSigned() external {
        IOrderSettler.Order memory order = _signed(true, 3050e6, 1e18);
        uint256 cost = _quoteExactOutput(true, 1e18);
        _expectFilled(order, cost + 1e6, 1e18, 1e6, true);
        (uint256 amountIn, uint256 amountOut) = _fill(order, true, 1e6);
        assertEq(amountIn, cost + 1e6, "in");
        assertEq(amountOut, 1e18, "out");
        _expectChanges(true, cost + 1e6, cost + 1e6, 1e18, 1e18);
    }

    /// @dev To the unit: input and fee together may be all that was signed, and no more.
    function testFuzz_TakesNoMoreThanWasSigned(uint256 slack, uint256 fee) external {
        uint256 cost = _quoteExactOutput(true, 1e18);
        slack = bound(slack, 0, 1e6);
        fee = bound(fee, 0, cost + slack);
        IOrderSettler.Order memory order = _signed(true, cost + slack, 1e18);
        vm.prank(EXECUTOR);
        if (fee > slack) {
            vm.expectRevert(abi.encodeWithSelector(IEntrypoint.ExcessiveInput.selector, cost, cost + slack - fee));
        }
        settler.fillOnCurveExactOut(fee, order);
        if (fee <= slack) _expectChanges(true, cost + fee, cost + fee, 1e18, 1e18);
    }

    function testFuzz_DeliversAtLeastWhatWasSigned(uint256 amount, uint256 minimum, uint256 fee) external {
        amount = bound(amount, 1e12, 10e18);
        fee = bound(fee, 0, amount / 2);
        uint256 quoted = _quote(false, amount - fee);
        minimum = bound(minimum, 0, quoted * 2);
        IOrderSettler.Order memory order = _signed(false, amount, minimum);
        vm.prank(EXECUTOR);
        if (minimum > quoted)
            vm.expectRevert(abi.encodeWithSelector(IEntrypoint.InsufficientOutput.selector, quoted, minimum));
        settler.fillOnCurve(fee, order);
        if (minimum <= quoted) _expectChanges(false, amount, amount, quoted, quoted);
    }

    function test_RevertWhen_TheFeeIsAboveTheInput() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.FeeTooHigh.selector, uint256(1e18 + 1), uint256(1e18)));
        settler.fillOnCurve(1e18 + 1, order);
        vm.prank(EXECUTOR);
        vm.expectRevert(ICurveBook.ZeroAmount.selector);
        settler.fillOnCurve(1e18, order);
    }

    /// @dev Orders pay no taker fee, whatever their owner pays when it trades by itself.
    function test_NoTakerFee() external {
        vm.startPrank(OWNER);
        entrypoint.setTakerFee(signer, 10_000);
        entrypoint.setTakerFee(address(settler), 10_000);
        book.setTakerFees(market, true);
        vm.stopPrank();
        uint256 quoted = _quote(false, 1e18);
        _fill(_signed(false, 1e18, quoted), false, 0);
        assertEq(quote.balanceOf(RECIPIENT), quoted, "whole");
    }

    /* THE SIGNATURE */

    function test_WorksOnce() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        _fill(order, false, 0);
        vm.startPrank(EXECUTOR);
        vm.expectRevert(SignatureTransfers.InvalidNonce.selector);
        settler.fillOnCurve(0, order);
        vm.expectRevert(SignatureTransfers.InvalidNonce.selector);
        settler.fillRoute(order, _route(1e18, 0));
    }

    function test_BindsEveryTerm() external {
        for (uint256 i = 0; i < 7; ++i) {
            IOrderSettler.Order memory order = _signed(false, 1e18, 100e6);
            if (i == 0) order.recipient = STRANGER;
            if (i == 1) order.minAmountOut -= 1;
            if (i == 2) order.maxAmountIn += 1;
            if (i == 3) order.deadline += 1;
            if (i == 4) order.owner = TAKER;
            if (i == 5) order.nonce += 100;
            if (i == 6) (order.tokenIn, order.tokenOut, order.minAmountOut) = (order.tokenOut, order.tokenIn, 1);
            vm.startPrank(EXECUTOR);
            // The other way round, the market has its say before Permit2.
            if (i != 6) vm.expectRevert(SignatureTransfers.InvalidSigner.selector);
            if (i != 6) settler.fillOnCurve(0, order);
            vm.expectRevert(SignatureTransfers.InvalidSigner.selector);
            settler.fillRoute(order, _route(1e18, 0));
            vm.stopPrank();
        }
    }

    function test_Expires() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.warp(block.timestamp + 1);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(SignatureTransfers.SignatureExpired.selector, START));
        settler.fillOnCurve(0, order);
    }

    function test_TypedData() external view {
        assertEq(settler.permit2(), address(permit2), "permit2");
        assertEq(keccak256(bytes(settler.witnessTypeString())), keccak256(bytes(WITNESS_TYPE_STRING)), "string");
        bytes32 hash = 0x0e132ade6e6ca1b340094f3ba2688c31d4eca4cd95568b0ab6091db2194f87f9;
        assertEq(settler.orderWitnessTypehash(), hash, "type hash");
    }

    /* WHO MAY */

    function test_RevertWhen_CallerIsNotAnExecutor() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        bytes memory denied = abi.encodeWithSelector(IOrderSettler.NotExecutor.selector, OWNER);
        vm.startPrank(OWNER);
        vm.expectRevert(denied);
        settler.fillOnCurve(0, order);
        vm.expectRevert(denied);
        settler.fillOnCurveExactOut(0, order);
        vm.expectRevert(denied);
        settler.fillRoute(order, _route(1e18, 0));
        vm.stopPrank();
    }

    function test_RevertWhen_DeliveryIsNotAskedByTheEntrypointWithinAnOrder() external {
        base.mint(address(settler), 1e18);
        IOrderSettler.Delivery memory delivery = _delivery(_signed(false, 1e18, 0), 1e18);
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NotEntrypoint.selector, STRANGER));
        settler.deliver(delivery);
        vm.prank(address(entrypoint));
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NotEntrypoint.selector, address(entrypoint)));
        settler.deliver(delivery);
    }

    function test_RevertWhen_SwapWithCallbackIsNotCalledByTheSettler() external {
        IEntrypoint.OrderSwap memory request;
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.NotSettler.selector, EXECUTOR));
        entrypoint.swapWithCallback(request);
    }

    /// @dev The settler never asks for this, and the sum must not wrap if it did.
    function test_RevertWhen_InputAndFeeOverflow() external {
        IEntrypoint.OrderSwap memory request = _request();
        request.inputFee = type(uint256).max;
        vm.prank(address(settler));
        vm.expectRevert(abi.encodeWithSignature("Panic(uint256)", 0x11));
        entrypoint.swapWithCallback(request);
    }

    /// @dev Words in which a type does not fit are refused wherever they are, with nothing in the answer, as the compiler does it.
    function test_RevertWhen_AWordOfAnOrderIsNotOfItsType() external {
        bytes memory call = abi.encodeCall(IEntrypoint.swapWithCallback, (_request()));
        uint256[5] memory words = [uint256(3), 4, 5, 9, 10];
        for (uint256 i = 0; i < words.length; ++i) {
            bytes memory spoilt = bytes.concat(call);
            // The lowest byte above those of an address, and a boolean of 3.
            if (words[i] == 3) spoilt[4 + 32 * 4 - 1] = 0x03;
            else spoilt[4 + 32 * words[i] + 11] = 0x01;
            vm.prank(address(settler));
            (bool done, bytes memory reason) = address(entrypoint).call(spoilt);
            assertTrue(!done && reason.length == 0, "refused");
        }
    }

    /// @dev What the entrypoint reads of an order comes from the call data of the executor as it is.
    function test_RevertWhen_AnAddressOfAnOrderHasMoreThan20Bytes() external {
        bytes memory call = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 0)));
        uint256[4] memory members = [uint256(0), 1, 5, 6];
        for (uint256 i = 0; i < members.length; ++i) {
            bytes memory spoilt = bytes.concat(call);
            spoilt[4 + 64 + 32 * members[i] + 11] = 0x01;
            vm.prank(EXECUTOR);
            (bool done, bytes memory reason) = address(settler).call(spoilt);
            assertTrue(!done && reason.length == 0, "refused");
        }
    }

    /// @dev A token that answers nothing at all, as an address without code does.
    function test_RevertWhen_TheVaultsBalanceIsUnreadable() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.etch(address(base), hex"00");
        vm.expectRevert(abi.encodeWithSelector(Tokens.BalanceUnreadable.selector, address(base)));
        vm.prank(EXECUTOR);
        settler.fillOnCurve(0, order);
    }

    /// @dev What the token says comes through, before it is moved and afterwards.
    function test_RevertWhen_TheVaultsBalanceFails() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.etch(address(base), address(new Refusing()).code);
        vm.startPrank(EXECUTOR);
        vm.expectRevert(abi.encode(1, 2, 3));
        settler.fillOnCurve(0, order);
        vm.etch(address(base), address(new FallsSilent()).code);
        vm.expectRevert(abi.encodeWithSelector(FallsSilent.Silent.selector));
        settler.fillOnCurve(0, order);
        vm.stopPrank();
    }

    /// @dev The entrypoint answers with two words, and a token may fail with as many.
    function test_RevertWhen_ThePaymentFailsWithTwoWords() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.etch(address(quote), address(new FailsWithTwoWords()).code);
        vm.prank(EXECUTOR);
        (bool done, bytes memory reason) = address(settler).call(abi.encodeCall(IOrderSettler.fillOnCurve, (0, order)));
        assertTrue(!done, "refused");
        assertEq(keccak256(reason), keccak256(new bytes(64)), "by the token's own reason");
    }

    /// @dev Anybody can deploy Permit2 later, and until then every call to its address succeeds.
    function test_RevertWhen_ThereIsNoPermit2() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.etch(address(permit2), "");
        vm.startPrank(EXECUTOR);
        vm.expectRevert(
            abi.encodeWithSelector(IEntrypoint.InsufficientReceived.selector, address(base), 0, order.maxAmountIn)
        );
        settler.fillOnCurve(0, order);
        vm.expectRevert();
        settler.fillRoute(order, _route(1e18, 0));
        vm.stopPrank();
    }

    function test_SetExecutor() external {
        vm.expectEmit(address(settler));
        emit IOrderSettler.ExecutorSet(STRANGER, true);
        vm.prank(OWNER);
        settler.setExecutor(STRANGER, true);
        assertTrue(settler.isExecutor(STRANGER), "added");
        vm.prank(OWNER);
        settler.setExecutor(STRANGER, false);
        assertTrue(!settler.isExecutor(STRANGER), "removed");
    }

    function test_SetTarget() external {
        assertTrue(settler.isTarget(address(exchange)), "listed");
        vm.expectEmit(address(settler));
        emit IOrderSettler.TargetSet(address(exchange), false);
        vm.prank(OWNER);
        settler.setTarget(address(exchange), false);
        assertTrue(!settler.isTarget(address(exchange)), "removed");
        // A listed token could be made to approve somebody, of what a later order brings here.
        address[4] memory bad = [address(base), address(quote), address(permit2), STRANGER];
        for (uint256 i = 0; i < bad.length; ++i) _expectNoTarget(bad[i]);
        address[] memory ours = _forbiddenRecipients();
        for (uint256 i = 0; i < ours.length; ++i) _expectNoTarget(ours[i]);
    }

    function _expectNoTarget(address account) private {
        vm.startPrank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenTarget.selector, account));
        settler.setTarget(account, true);
        settler.setTarget(account, false);
        vm.stopPrank();
    }

    function test_RevertWhen_CallerIsNotTheOwner() external {
        bytes memory denied = abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, EXECUTOR);
        vm.startPrank(EXECUTOR);
        vm.expectRevert(denied);
        settler.setExecutor(EXECUTOR, true);
        vm.expectRevert(denied);
        settler.setTarget(address(exchange), true);
        vm.stopPrank();
        Ownable2Step owned = Ownable2Step(address(settler));
        vm.prank(OWNER);
        owned.transferOwnership(STRANGER);
        assertEq(owned.owner(), OWNER, "not yet");
        vm.prank(STRANGER);
        owned.acceptOwnership();
        assertEq(owned.owner(), STRANGER, "accepted");
    }
}
