// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {ChangelingToken, Mischief} from "../support/ChangelingToken.sol";
import {ShareVenue} from "../support/HostileTokens.sol";
import {IExchange} from "../support/Orders.sol";
import {SettlerOrders} from "../support/SettlerOrders.sol";

/// @notice Signed orders by routes: over targets, together with the curve or without it.
contract OrderSettlerRoutesTest is SettlerOrders {
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
        _expectFilled(order, 1e18, 3002e6, 0, false);
        (uint256 amountIn, ) = _fillRoute(order, route);
        assertEq(amountIn, 1e18, "what the owner gave, whatever came back with it");
        assertEq(base.balanceOf(signer), 10 ** 30 + 4e18, "owner");
        assertEq(quote.balanceOf(RECIPIENT), 3002e6, "recipient");
        _expectNothingLeft();
    }

    /// @dev What a route takes of stray tokens beyond the order's own is not the owner's.
    function test_StrayTokensPayForWhatExceedsTheOrder() external {
        base.mint(address(settler), 5e18);
        IOrderSettler.Route memory route = _route(1e18, 0);
        route = _via(route, address(base), 1.5e18, 1.5e18, address(quote), 2995e6);
        (uint256 amountIn, ) = _fillRoute(_signed(false, 1e18, 0), route);
        assertEq(amountIn, 1e18, "no more than was pulled");
        assertEq(base.balanceOf(signer), 10 ** 30 + 3.5e18, "owner");
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
        address[] memory bad = _forbiddenRecipients();
        for (uint256 i = 0; i < bad.length; ++i) {
            IOrderSettler.Order memory order = _order(address(base), address(quote), 1e18, 1e6);
            order.recipient = bad[i];
            order = _sign(order);
            vm.startPrank(EXECUTOR);
            vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenRecipient.selector, bad[i]));
            settler.fillRoute(order, _route(1e18, 0));
            vm.expectRevert(abi.encodeWithSelector(IEntrypoint.ForbiddenRecipient.selector, bad[i]));
            settler.fillOnCurve(0, order);
            vm.expectRevert(abi.encodeWithSelector(IEntrypoint.ForbiddenRecipient.selector, bad[i]));
            settler.fillOnCurveExactOut(0, order);
            vm.stopPrank();
        }
    }

    function test_RevertWhen_ATargetIsNotListed() external {
        address[3] memory bad = [STRANGER, address(permit2), address(custodian)];
        for (uint256 i = 0; i < bad.length; ++i) _expectForbidden(bad[i]);
        vm.prank(OWNER);
        settler.setTarget(address(exchange), false);
        _expectForbidden(address(exchange));
        // What was let in before its market was listed is still none of the order's own.
        _listAsTarget(address(base));
        _listAsTarget(address(quote));
        _expectForbidden(address(base));
        _expectForbidden(address(quote));
    }

    function _listAsTarget(address token) private {
        vm.mockCall(address(book), abi.encodeCall(ICurveBook.isListed, (token)), abi.encode(false));
        vm.prank(OWNER);
        settler.setTarget(token, true);
        vm.clearMockedCalls();
    }

    /// @dev A pool that is the token of its own shares is a venue like any other, but for what would give leave to take such shares.
    function test_AVenueMayBeATokenOfItsOwn() external {
        ShareVenue venue = new ShareVenue();
        quote.mint(address(venue), 3000e6);
        vm.prank(OWNER);
        settler.setTarget(address(venue), true);
        bytes memory sell = abi.encodeCall(ShareVenue.trade, (address(base), 1e18, address(quote), 2995e6));
        IOrderSettler.Order memory order = _signed(false, 1e18, 2990e6);
        (, uint256 amountOut) = _fillRoute(order, _step(_route(1e18, 0), address(venue), address(base), 1e18, sell));
        assertEq(amountOut, 2995e6, "out");
        assertEq(base.allowance(address(settler), address(venue)), 0, "no allowance is left");

        bytes[3] memory leave = [
            abi.encodeCall(IERC20.approve, (EXECUTOR, 1)),
            abi.encodeWithSignature("increaseAllowance(address,uint256)", EXECUTOR, 1),
            abi.encodePacked(IERC20.approve.selector)
        ];
        order = _signed(false, 1e18, 0);
        for (uint256 i = 0; i < leave.length; ++i) {
            IOrderSettler.Route memory route = _step(_route(1e18, 0), address(venue), address(base), 0, leave[i]);
            vm.prank(EXECUTOR);
            vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenTarget.selector, address(venue)));
            settler.fillRoute(order, route);
        }
        assertEq(venue.allowance(address(settler), EXECUTOR), 0, "nobody has leave");
    }

    function test_RevertWhen_ATargetFails() external {
        IOrderSettler.Route memory route = _route(1e18, 0);
        bytes memory revoke = abi.encodeCall(IExchange.callBack, (address(settler), hex"deadbeef"));
        route = _step(route, address(exchange), address(base), 0, revoke);
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
}
