// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {Tokens} from "../../../contracts/libraries/Tokens.sol";
import {ChangelingToken, Mischief} from "../support/ChangelingToken.sol";
import {FailsWithTwoWords, FallsSilent, Refusing} from "../support/HostileTokens.sol";
import {IExchange, Orders} from "../support/Orders.sol";
import {IMintableToken} from "../support/Interfaces.sol";
import {SignatureTransfers} from "../support/SignatureTransfers.sol";

/// @notice Signed orders, on a curve of 15 knots of 0.819 base per side at 3000.01 and up, 2999.99 and down.
contract OrderSettlerTest is Orders {
    function setUp() public override {
        super.setUp();
        _postDefault();
    }

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

    /* BY ROUTES */

    function test_RouteOutside() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 2990e6);
        IOrderSettler.Route memory route = _route(1e18, 0.02e18);
        route = _via(route, address(base), 0.98e18, 0.98e18, address(quote), 2995e6);
        _expectFilled(order, 1e18, 2995e6, 0.02e18, false);
        (uint256 amountIn, uint256 amountOut) = _fillRoute(order, route);
        assertEq(amountIn, 1e18, "in");
        assertEq(amountOut, 2995e6, "out");
        _expectChanges(false, 1e18, 0.02e18, 2995e6, 0);
        _expectNothingLeft();
    }

    function test_RouteSplitBetweenTheCurveAndATarget() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        IOrderSettler.Route memory route = _route(1e18, 0.01e18);
        route.ownAmount = 0.6e18;
        route = _via(route, address(base), 0.39e18, 0.39e18, address(quote), 1200e6);
        uint256 own = _quote(false, 0.6e18);
        _expectFilled(order, 1e18, own + 1200e6, 0.01e18, true);
        vm.recordLogs();
        _fillRoute(order, route);
        assertEq(_lastSwap().inputFee, 0.01e18, "input fee");
        _expectChanges(false, 1e18, 0.61e18, own + 1200e6, own);
        _expectNothingLeft();
    }

    /// @dev What the own part and the target did not need goes back.
    function test_RouteGivesBackWhatItDidNotNeed() external {
        IOrderSettler.Order memory order = _signed(true, 3050e6, 1e18);
        IOrderSettler.Route memory route = _route(3040e6, 1e6);
        (route.ownAmount, route.ownExactOut) = (0.5e18, true);
        route = _via(route, address(quote), 1501e6, 1510e6, address(base), 0.5e18);
        uint256 cost = _quoteExactOutput(true, 0.5e18);
        _expectFilled(order, cost + 1501e6 + 1e6, 1e18, 1e6, true);
        _fillRoute(order, route);
        _expectChanges(true, cost + 1502e6, cost + 1e6, 1e18, 0.5e18);
        _expectNothingLeft();
    }

    function test_RevertWhen_TheOwnPartCostsMoreThanWasPulled() external {
        IOrderSettler.Route memory route = _route(1000e6, 1e6);
        (route.ownAmount, route.ownExactOut) = (0.5e18, true);
        uint256 cost = _quoteExactOutput(true, 0.5e18);
        IOrderSettler.Order memory order = _signed(true, 3050e6, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.ExcessiveInput.selector, cost, uint256(999e6)));
        settler.fillRoute(order, route);
    }

    /// @dev The vault must not be paid with an earlier order's leftovers: what is here belongs to the order at hand.
    function test_RouteByTheCurveAlone() external {
        IOrderSettler.Route memory route = _route(1e18, 0);
        route.ownAmount = 1e18;
        uint256 own = _quote(false, 1e18);
        _fillRoute(_signed(false, 1e18, own), route);
        _expectChanges(false, 1e18, 1e18, own, own);
    }

    function test_RouteDeliversToTheUnitOrNotAtAll() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 2995e6);
        IOrderSettler.Route memory low = _route(1e18, 0);
        low = _via(low, address(base), 1e18, 1e18, address(quote), 2995e6 - 1);
        vm.prank(EXECUTOR);
        vm.expectRevert(
            abi.encodeWithSelector(IOrderSettler.InsufficientOutput.selector, uint256(2995e6 - 1), uint256(2995e6))
        );
        settler.fillRoute(order, low);
        IOrderSettler.Route memory enough = _route(1e18, 0);
        enough = _via(enough, address(base), 1e18, 1e18, address(quote), 2995e6);
        _fillRoute(order, enough);
    }

    function test_RouteDeliversASingleUnitOrNotAtAll() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 1);
        IOrderSettler.Route memory nothing = _route(1e18, 0);
        nothing = _via(nothing, address(base), 1e18, 1e18, address(quote), 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.InsufficientOutput.selector, uint256(0), uint256(1)));
        settler.fillRoute(order, nothing);
        IOrderSettler.Route memory unit = _route(1e18, 0);
        unit = _via(unit, address(base), 1e18, 1e18, address(quote), 1);
        _fillRoute(order, unit);
        assertEq(quote.balanceOf(RECIPIENT), 1, "recipient");
    }

    function test_AFeeOfOneUnitReachesTheVault() external {
        IOrderSettler.Route memory route = _route(1e18, 1);
        route = _via(route, address(base), 1e18 - 1, 1e18 - 1, address(quote), 2995e6);
        _fillRoute(_signed(false, 1e18, 0), route);
        assertEq(base.balanceOf(address(custodian)), 10 ** 30 + 1, "vault");
    }

    function test_RevertWhen_TheFeeArrivesShort() external {
        ChangelingToken token = new ChangelingToken(ChangelingToken.Kind.FeeOnTransfer);
        token.mint(signer, 100e6);
        _approvePermit2(signer, address(token));
        IOrderSettler.Order memory order = _sign(_order(address(token), address(base), 100e6, 0));
        vm.expectRevert(
            abi.encodeWithSelector(
                IEntrypoint.InsufficientReceived.selector,
                address(token),
                uint256(9.8e6),
                uint256(10e6)
            )
        );
        vm.prank(EXECUTOR);
        settler.fillRoute(order, _route(100e6, 10e6));
    }

    /// @dev What counts is what the recipient has more, even if it could have kept it.
    function test_RevertWhen_TheRecipientPassesTheOutputOn() external {
        ChangelingToken token = new ChangelingToken(ChangelingToken.Kind.Hook);
        token.mint(address(exchange), 5e6);
        Mischief recipient = new Mischief();
        recipient.hook(token);
        recipient.plan(address(token), abi.encodeCall(ChangelingToken.transfer, (STRANGER, 5e6)));
        IOrderSettler.Order memory order = _order(address(base), address(token), 1e18, 1);
        order.recipient = address(recipient);
        order = _sign(order);
        IOrderSettler.Route memory route = _via(_route(1e18, 0), address(base), 1e18, 1e18, address(token), 5e6);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.InsufficientOutput.selector, uint256(0), uint256(1)));
        vm.prank(EXECUTOR);
        settler.fillRoute(order, route);
    }

    /// @dev Tokens that somebody sent here by mistake go to the next order that has to do with them.
    function test_StrayTokensGoToTheNextOrder() external {
        base.mint(address(settler), 5e18);
        quote.mint(address(settler), 7e6);
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        IOrderSettler.Route memory route = _route(1e18, 0);
        route = _via(route, address(base), 1e18, 1e18, address(quote), 2995e6);
        _expectFilled(order, 0, 3002e6, 0, false);
        (uint256 amountIn, ) = _fillRoute(order, route);
        assertEq(amountIn, 0, "more came back than was taken");
        assertEq(base.balanceOf(signer), 10 ** 30 + 4e18, "owner");
        assertEq(quote.balanceOf(RECIPIENT), 3002e6, "recipient");
        _expectNothingLeft();
    }

    function test_NoAllowanceStays() external {
        IOrderSettler.Route memory route = _route(1e18, 0);
        route = _via(route, address(base), 0.4e18, 1e18, address(quote), 1200e6);
        route = _via(route, address(base), 0.3e18, 0.3e18, address(quote), 900e6);
        _fillRoute(_signed(false, 1e18, 0), route);
        assertEq(base.allowance(address(settler), address(exchange)), 0, "allowance");
        assertEq(base.balanceOf(signer), 10 ** 30 - 0.7e18, "rest came back");
    }

    function test_NoAllowanceStaysWhenASingleUnitIsLeft() external {
        IOrderSettler.Route memory route = _route(1e18, 0);
        route = _via(route, address(base), 1e18 - 1, 1e18, address(quote), 2995e6);
        _fillRoute(_signed(false, 1e18, 0), route);
        assertEq(base.allowance(address(settler), address(exchange)), 0, "allowance");
    }

    function test_RevertWhen_ATargetTakesMoreThanItsShare() external {
        IOrderSettler.Route memory route = _route(1e18, 0);
        route = _via(route, address(base), 0.4e18, 0.4e18 - 1, address(quote), 1200e6);
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert();
        settler.fillRoute(order, route);
    }

    function test_RevertWhen_TheRouteTakesMoreThanWasSigned() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.startPrank(EXECUTOR);
        vm.expectRevert(
            abi.encodeWithSelector(IOrderSettler.ExcessiveInput.selector, uint256(1e18 + 1), uint256(1e18))
        );
        settler.fillRoute(order, _route(1e18 + 1, 0));
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.FeeTooHigh.selector, uint256(6), uint256(5)));
        settler.fillRoute(order, _route(5, 6));
        (uint256 amountIn, ) = settler.fillRoute(order, _route(5, 5));
        assertEq(amountIn, 5, "all of it a fee");
    }

    function test_RevertWhen_TokensAreTheSame() external {
        IOrderSettler.Order memory order = _sign(_order(address(base), address(base), 1e18, 0));
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.SameToken.selector, address(base)));
        settler.fillRoute(order, _route(1e18, 0));
    }

    function test_RevertWhen_RecipientIsForbidden() external {
        address[5] memory bad = [address(0), address(settler), address(entrypoint), address(custodian), address(book)];
        for (uint256 i = 0; i < bad.length; ++i) {
            IOrderSettler.Order memory order = _order(address(base), address(quote), 1e18, 0);
            order.recipient = bad[i];
            order = _sign(order);
            vm.startPrank(EXECUTOR);
            vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenRecipient.selector, bad[i]));
            settler.fillRoute(order, _route(1e18, 0));
            vm.expectRevert(abi.encodeWithSelector(IEntrypoint.ForbiddenRecipient.selector, bad[i]));
            settler.fillOnCurve(0, order);
            vm.stopPrank();
        }
    }

    function test_RevertWhen_ATargetIsNotListed() external {
        address[3] memory bad = [STRANGER, address(permit2), address(custodian)];
        for (uint256 i = 0; i < bad.length; ++i) _expectForbidden(bad[i]);
        vm.prank(OWNER);
        settler.setTarget(address(exchange), false);
        _expectForbidden(address(exchange));
        // A token may be listed, for other orders than those that trade it.
        vm.startPrank(OWNER);
        settler.setTarget(address(base), true);
        settler.setTarget(address(quote), true);
        vm.stopPrank();
        _expectForbidden(address(base));
        _expectForbidden(address(quote));
    }

    function test_RevertWhen_ATargetFails() external {
        IOrderSettler.Route memory route = _route(1e18, 0);
        bytes memory revoke = abi.encodeCall(IExchange.callBack, (address(settler), hex"deadbeef"));
        route = _step(route, address(exchange), 0, revoke);
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.CallFailed.selector, address(exchange), bytes("")));
        settler.fillRoute(order, route);
    }

    /// @dev A target may be an executor itself and still gets no second order in, nor a payment out of this one.
    function test_CanNotBeEnteredFromATarget() external {
        vm.prank(OWNER);
        settler.setExecutor(address(exchange), true);
        IOrderSettler.Order memory inner = _signed(false, 1e18, 0);
        bytes memory reentered = abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
        _expectInner(abi.encodeCall(IOrderSettler.fillOnCurve, (0, inner)), reentered);
        _expectInner(abi.encodeCall(IOrderSettler.fillOnCurveExactOut, (0, inner)), reentered);
        _expectInner(abi.encodeCall(IOrderSettler.fillRoute, (inner, _route(1e18, 0))), reentered);
        _expectInner(
            abi.encodeCall(IOrderSettler.deliver, (_delivery(inner, 1e18))),
            abi.encodeWithSelector(IOrderSettler.NotEntrypoint.selector, address(exchange))
        );
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
        address[6] memory bad = [
            address(permit2),
            address(settler),
            address(entrypoint),
            address(custodian),
            address(book),
            STRANGER
        ];
        vm.startPrank(OWNER);
        for (uint256 i = 0; i < bad.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenTarget.selector, bad[i]));
            settler.setTarget(bad[i], true);
            settler.setTarget(bad[i], false);
        }
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

    /* HELPERS */

    function _expectForbidden(address target) private {
        IOrderSettler.Route memory route = _step(_route(1e18, 0), target, 0, "");
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenTarget.selector, target));
        settler.fillRoute(order, route);
    }

    function _expectInner(bytes memory data, bytes memory reason) private {
        IOrderSettler.Route memory route = _step(
            _route(1e18, 0),
            address(exchange),
            0,
            abi.encodeCall(IExchange.callBack, (address(settler), data))
        );
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.CallFailed.selector, address(exchange), reason));
        settler.fillRoute(order, route);
    }

    function _delivery(
        IOrderSettler.Order memory order,
        uint256 amount
    ) private pure returns (IOrderSettler.Delivery memory) {
        return IOrderSettler.Delivery(amount, _headOf(order));
    }

    /// @dev Sells one base, as the settler asks for it.
    function _request() private returns (IEntrypoint.OrderSwap memory) {
        return IEntrypoint.OrderSwap(1e18, 0, 0, false, _headOf(_signed(false, 1e18, 0)));
    }

    function _headOf(IOrderSettler.Order memory order) private pure returns (IOrderSettler.OrderHead memory) {
        return
            IOrderSettler.OrderHead({
                owner: order.owner,
                tokenIn: order.tokenIn,
                maxAmountIn: order.maxAmountIn,
                nonce: order.nonce,
                deadline: order.deadline,
                recipient: order.recipient,
                tokenOut: order.tokenOut,
                minAmountOut: order.minAmountOut
            });
    }

    function _expectFilled(
        IOrderSettler.Order memory order,
        uint256 amountIn,
        uint256 amountOut,
        uint256 fee,
        bool feeInSwap
    ) private {
        vm.expectEmit(address(settler));
        emit IOrderSettler.OrderFilled(
            order.owner,
            order.nonce,
            order.recipient,
            order.tokenIn,
            order.tokenOut,
            amountIn,
            amountOut,
            fee,
            feeInSwap
        );
    }

    /// @dev What the signer gave and the recipient got since the start, and the vault's part of both.
    function _expectChanges(bool isBuy, uint256 paid, uint256 vaultGot, uint256 got, uint256 vaultPaid) private view {
        (IMintableToken tokenIn, IMintableToken tokenOut) = isBuy ? (quote, base) : (base, quote);
        assertEq(tokenIn.balanceOf(signer), 10 ** 30 - paid, "signer paid");
        assertEq(tokenIn.balanceOf(address(custodian)), 10 ** 30 + vaultGot, "vault got");
        assertEq(tokenOut.balanceOf(RECIPIENT), got, "recipient got");
        assertEq(tokenOut.balanceOf(address(custodian)), 10 ** 30 - vaultPaid, "vault paid");
    }

    function _expectNothingLeft() private view {
        assertEq(base.balanceOf(address(settler)) + quote.balanceOf(address(settler)), 0, "nothing left");
        assertEq(base.allowance(address(settler), address(exchange)), 0, "no allowance");
        assertEq(quote.allowance(address(settler), address(exchange)), 0, "no allowance");
    }
}
