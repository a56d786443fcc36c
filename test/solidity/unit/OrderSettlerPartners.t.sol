// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {ChangelingToken} from "../support/ChangelingToken.sol";
import {HookToken} from "../support/HostileTokens.sol";
import {SettlerOrders} from "../support/SettlerOrders.sol";
import {SignatureTransfers} from "../support/SignatureTransfers.sol";
import {Attacker} from "../property/Reentrancy.t.sol";

/// @notice Signed orders with a partner, who gets a part of what they buy, and with a hash.
contract OrderSettlerPartnersTest is SettlerOrders {
    bytes32 private constant APP_DATA = keccak256("app");

    /* WHAT THE PARTNER GETS */

    function testFuzz_SellsByTheCurveAlone(uint256 amountIn, uint256 fee, uint256 bps, bool isBuy) external {
        bps = bound(bps, 0, 1_000);
        amountIn = bound(amountIn, isBuy ? 1e6 : 1e15, isBuy ? 30_000e6 : 10e18);
        fee = bound(fee, 0, amountIn / 2);
        uint256 gross = _quote(isBuy, amountIn - fee);
        uint256 part = (gross * bps) / 10_000;
        IOrderSettler.PartnerTerms memory terms = _terms(bps);
        IOrderSettler.Order memory order = _signedFor(isBuy, amountIn, gross - part, terms);
        IOrderSettler.Route memory route = _route(amountIn, fee);
        route.ownAmount = amountIn - fee;
        _expectFilled(order, amountIn, gross - part, fee, true);
        _expectPartnerFilled(order, terms, part);
        (uint256 spent, uint256 got) = _fillPartner(order, terms, route);
        assertEq(spent, amountIn, "in");
        assertEq(got, gross - part, "out");
        _expectChanges(isBuy, amountIn, amountIn, gross - part, gross);
        _expectPartnerGot(isBuy, part);
    }

    /// @dev The recipient gets just what was signed, and the partner its part of the smallest amount that leaves that.
    function testFuzz_BuysByTheCurveAlone(uint256 amountOut, uint256 bps, bool isBuy) external {
        bps = bound(bps, 0, 1_000);
        amountOut = bound(amountOut, isBuy ? 1e12 : 1e4, isBuy ? 10e18 : 30_000e6);
        uint256 gross = ((amountOut - 1) * 10_000) / (10_000 - bps) + 1;
        uint256 cost = _quoteExactOutput(isBuy, gross);
        IOrderSettler.PartnerTerms memory terms = _terms(bps);
        uint256 most = cost + 1e6;
        IOrderSettler.Order memory order = _signedFor(isBuy, most + 1e3, amountOut, terms);
        IOrderSettler.Route memory route = _route(most, 1e3);
        (route.ownAmount, route.ownExactOut) = (gross, true);
        (uint256 spent, uint256 got) = _fillPartner(order, terms, route);
        assertEq(spent, cost + 1e3, "in");
        assertEq(got, amountOut, "out");
        _expectChanges(isBuy, cost + 1e3, cost + 1e3, amountOut, gross);
        _expectPartnerGot(isBuy, gross - amountOut);
    }

    function test_ByATarget() external {
        IOrderSettler.PartnerTerms memory terms = _terms(100);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, 2965.05e6, terms);
        IOrderSettler.Route memory route = _route(1e18, 0.02e18);
        route = _via(route, address(base), 0.98e18, 0.98e18, address(quote), 2995e6);
        _expectFilled(order, 1e18, 2965.05e6, 0.02e18, false);
        _expectPartnerFilled(order, terms, 29.95e6);
        _fillPartner(order, terms, route);
        _expectChanges(false, 1e18, 0.02e18, 2965.05e6, 0);
        _expectPartnerGot(false, 29.95e6);
    }

    function test_SplitBetweenTheCurveAndATarget() external {
        IOrderSettler.PartnerTerms memory terms = _terms(1_000);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, 0, terms);
        IOrderSettler.Route memory route = _route(1e18, 0.01e18);
        route.ownAmount = 0.6e18;
        route = _via(route, address(base), 0.39e18, 0.39e18, address(quote), 1200e6);
        uint256 own = _quote(false, 0.6e18);
        uint256 part = (own + 1200e6) / 10;
        _fillPartner(order, terms, route);
        _expectChanges(false, 1e18, 0.61e18, own + 1200e6 - part, own);
        _expectPartnerGot(false, part);
    }

    function test_PurchaseSplitBetweenTheCurveAndATarget() external {
        IOrderSettler.PartnerTerms memory terms = _terms(1_000);
        IOrderSettler.Order memory order = _signedFor(true, 3050e6, 0.9e18, terms);
        IOrderSettler.Route memory route = _route(3040e6, 1e6);
        (route.ownAmount, route.ownExactOut) = (0.5e18, true);
        route = _via(route, address(quote), 1501e6, 1510e6, address(base), 0.5e18);
        uint256 cost = _quoteExactOutput(true, 0.5e18);
        _fillPartner(order, terms, route);
        _expectChanges(true, cost + 1502e6, cost + 1e6, 0.9e18, 0.5e18);
        _expectPartnerGot(true, 0.1e18);
    }

    /// @dev What is left over at the end of a route is the buy token, or goes back to the owner: the partner has no part of it.
    function test_TakesNothingOfWhatGoesBack() external {
        IOrderSettler.PartnerTerms memory terms = _terms(1_000);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, 0, terms);
        IOrderSettler.Route memory route = _route(1e18, 0);
        route = _via(route, address(base), 0.4e18, 0.98e18, address(quote), 1200e6);
        _fillPartner(order, terms, route);
        _expectChanges(false, 0.4e18, 0, 1080e6, 0);
        assertEq(base.balanceOf(PARTNER), 0, "nothing sold");
        _expectPartnerGot(false, 120e6);
    }

    function test_WithAHashAlone() external {
        IOrderSettler.PartnerTerms memory terms = IOrderSettler.PartnerTerms(address(0), 0, APP_DATA);
        uint256 expected = _quote(false, 1e18);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, expected, terms);
        _expectFilled(order, 1e18, expected, 0, true);
        _expectPartnerFilled(order, terms, 0);
        _fillPartner(order, terms, _own(1e18));
        _expectChanges(false, 1e18, 1e18, expected, expected);
    }

    /// @dev Whoever the partner is besides, the minimum is what the recipient gets without the partner's part.
    function test_ThePartnerMayBeAnybodyElse() external {
        address[3] memory partners = [RECIPIENT, signer, EXECUTOR];
        uint256 snapshot = vm.snapshotState();
        for (uint256 i = 0; i < partners.length; ++i) {
            IOrderSettler.PartnerTerms memory terms = IOrderSettler.PartnerTerms(partners[i], 1_000, 0);
            uint256 gross = _quote(false, 1e18);
            uint256 net = gross - gross / 10;
            uint256 had = quote.balanceOf(partners[i]);
            IOrderSettler.Order memory greedy = _signedFor(false, 1e18, net + 1, terms);
            vm.prank(EXECUTOR);
            vm.expectRevert(abi.encodeWithSelector(IOrderSettler.InsufficientOutput.selector, net, net + 1));
            settler.fillPartnerRoute(greedy, terms, _own(1e18));
            (, uint256 got) = _fillPartner(_signedFor(false, 1e18, net, terms), terms, _own(1e18));
            assertEq(got, net, "out");
            uint256 both = partners[i] == RECIPIENT ? gross : gross / 10;
            assertEq(quote.balanceOf(partners[i]) - had, both, "partner");
            assertTrue(vm.revertToState(snapshot), "once more");
        }
    }

    /* WHAT WAS SIGNED */

    function test_RevertWhen_TheTermsAreOthers() external {
        IOrderSettler.PartnerTerms memory terms = _terms(100);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, 0, terms);
        IOrderSettler.PartnerTerms[4] memory others = [
            IOrderSettler.PartnerTerms(STRANGER, 100, APP_DATA),
            IOrderSettler.PartnerTerms(PARTNER, 101, APP_DATA),
            IOrderSettler.PartnerTerms(PARTNER, 99, APP_DATA),
            IOrderSettler.PartnerTerms(PARTNER, 100, 0)
        ];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.prank(EXECUTOR);
            vm.expectRevert(SignatureTransfers.InvalidSigner.selector);
            settler.fillPartnerRoute(order, others[i], _own(1e18));
        }
        _fillPartner(order, terms, _own(1e18));
    }

    /// @dev The partner's part can't be left out, nor can one be added.
    function test_RevertWhen_FilledAsAnOrderOfTheOtherKind() external {
        IOrderSettler.PartnerTerms memory none = IOrderSettler.PartnerTerms(address(0), 0, 0);
        IOrderSettler.Order memory partnered = _signedFor(false, 1e18, 0, none);
        vm.startPrank(EXECUTOR);
        vm.expectRevert(SignatureTransfers.InvalidSigner.selector);
        settler.fillOnCurve(0, partnered);
        vm.expectRevert(SignatureTransfers.InvalidSigner.selector);
        settler.fillRoute(partnered, _own(1e18));
        vm.stopPrank();
        IOrderSettler.Order memory plain = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(SignatureTransfers.InvalidSigner.selector);
        settler.fillPartnerRoute(plain, none, _own(1e18));
    }

    function test_TypesAreAsSigned() external view {
        assertEq(
            keccak256(bytes(settler.partnerWitnessTypeString())),
            keccak256(bytes(PARTNER_WITNESS_TYPE_STRING)),
            "string"
        );
        assertEq(
            settler.partnerOrderWitnessTypehash(),
            keccak256(
                "PartnerOrderWitness(address recipient,address tokenOut,uint256 minAmountOut,address partner,uint256 partnerBps,bytes32 appData)"
            ),
            "hash"
        );
    }

    /* REFUSALS */

    function test_RevertWhen_NotAnExecutor() external {
        IOrderSettler.PartnerTerms memory terms = _terms(100);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, 0, terms);
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NotExecutor.selector, STRANGER));
        settler.fillPartnerRoute(order, terms, _own(1e18));
    }

    function test_RevertWhen_ThePartIsTooHigh() external {
        IOrderSettler.PartnerTerms memory terms = _terms(1_001);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, 0, terms);
        vm.prank(EXECUTOR);
        vm.expectRevert(
            abi.encodeWithSelector(IOrderSettler.PartnerFeeTooHigh.selector, uint256(1_001), uint256(1_000))
        );
        settler.fillPartnerRoute(order, terms, _own(1e18));
    }

    function test_RevertWhen_ThePartnerIsOurs() external {
        address[] memory forbidden = _forbiddenRecipients();
        for (uint256 i = 0; i < forbidden.length; ++i) {
            IOrderSettler.PartnerTerms memory terms = IOrderSettler.PartnerTerms(forbidden[i], 1, 0);
            IOrderSettler.Order memory order = _signedFor(false, 1e18, 0, terms);
            vm.prank(EXECUTOR);
            vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenPartner.selector, forbidden[i]));
            settler.fillPartnerRoute(order, terms, _own(1e18));
        }
    }

    function test_RevertWhen_TheRouteIsWrong() external {
        IOrderSettler.PartnerTerms memory terms = _terms(100);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, 0, terms);
        vm.startPrank(EXECUTOR);
        vm.expectRevert(
            abi.encodeWithSelector(IOrderSettler.ExcessiveInput.selector, uint256(1e18 + 1), uint256(1e18))
        );
        settler.fillPartnerRoute(order, terms, _own(1e18 + 1));
        IOrderSettler.Route memory greedy = _own(1e18);
        greedy.feeAmount = 1e18 + 1;
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.FeeTooHigh.selector, uint256(1e18 + 1), uint256(1e18)));
        settler.fillPartnerRoute(order, terms, greedy);
        vm.stopPrank();
        order.recipient = address(custodian);
        order = _signFor(order, terms);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenRecipient.selector, address(custodian)));
        settler.fillPartnerRoute(order, terms, _own(1e18));
    }

    function test_RevertWhen_TheCurveDoesNotGiveIt() external {
        IOrderSettler.PartnerTerms memory terms = _terms(1_000);
        uint256 gross = _quote(false, 1e18);
        uint256 net = gross - gross / 10;
        IOrderSettler.Order memory sale = _signedFor(false, 1e18, net + 1, terms);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.InsufficientOutput.selector, net, net + 1));
        settler.fillPartnerRoute(sale, terms, _own(1e18));

        uint256 cost = _quoteExactOutput(true, 1e18);
        IOrderSettler.Order memory purchase = _signedFor(true, cost, 0.9e18, terms);
        IOrderSettler.Route memory route = _route(cost, 1);
        (route.ownAmount, route.ownExactOut) = (1e18, true);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.ExcessiveInput.selector, cost, cost - 1));
        settler.fillPartnerRoute(purchase, terms, route);
    }

    /// @dev Whoever is checked first is the order's owner, whatever the kind of the fill.
    function test_IsFilledChecked() external {
        IOrderSettler.PartnerTerms memory terms = _terms(100);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, 0, terms);
        bytes memory fill = abi.encodeCall(IOrderSettler.fillPartnerRoute, (order, terms, _own(1e18)));
        IOrderSettler.Check[] memory none = new IOrderSettler.Check[](0);
        uint256 part = _quote(false, 1e18) / 100;
        vm.prank(EXECUTOR);
        settler.fillChecked(none, 1e18, "", fill);
        _expectPartnerGot(false, part);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NonceUsed.selector, signer, order.nonce));
        settler.fillChecked(none, 1e18, "", fill);
    }

    function test_RevertWhen_TheTargetBringsTooLittle() external {
        IOrderSettler.PartnerTerms memory terms = _terms(1_000);
        IOrderSettler.Order memory order = _signedFor(false, 1e18, 900e6, terms);
        IOrderSettler.Route memory route = _via(_route(1e18, 0), address(base), 1e18, 1e18, address(quote), 1000e6 - 2);
        vm.prank(EXECUTOR);
        vm.expectRevert(
            abi.encodeWithSelector(IOrderSettler.InsufficientOutput.selector, uint256(900e6 - 1), uint256(900e6))
        );
        settler.fillPartnerRoute(order, terms, route);
    }

    /* PARTNERS AND TOKENS THAT MEAN ILL */

    /// @dev All or nothing: no executor can fill the order without the partner.
    function test_RevertWhen_TheTokenRefusesThePartner() external {
        ChangelingToken token = new ChangelingToken(ChangelingToken.Kind.Blacklist);
        token.mint(address(exchange), 100e6);
        token.blacklist(PARTNER, true);
        IOrderSettler.PartnerTerms memory terms = _terms(100);
        IOrderSettler.Order memory order = _signFor(_order(address(base), address(token), 1e18, 0), terms);
        IOrderSettler.Route memory route = _via(_route(1e18, 0), address(base), 1e18, 1e18, address(token), 100e6);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(ChangelingToken.Blacklisted.selector, PARTNER));
        settler.fillPartnerRoute(order, terms, route);
        token.blacklist(PARTNER, false);
        _fillPartner(order, terms, route);
        assertEq(token.balanceOf(PARTNER), 1e6, "partner");
        assertEq(token.balanceOf(RECIPIENT), 99e6, "recipient");
    }

    /// @dev A partner that is an executor, and fills another order while it is paid.
    function test_APartnerCanNotEnterAgain() external {
        HookToken token = new HookToken();
        token.mint(address(exchange), 100e6);
        Attacker attacker = new Attacker(token, new address[](0), new address[](0));
        vm.prank(OWNER);
        settler.setExecutor(address(attacker), true);
        IOrderSettler.PartnerTerms memory terms = IOrderSettler.PartnerTerms(address(attacker), 100, 0);
        IOrderSettler.Order memory other = _signed(false, 1e18, 0);
        attacker.plan(address(settler), abi.encodeCall(IOrderSettler.fillOnCurve, (0, other)), true);
        IOrderSettler.Order memory order = _signFor(_order(address(base), address(token), 1e18, 0), terms);
        _fillPartner(order, terms, _via(_route(1e18, 0), address(base), 1e18, 1e18, address(token), 100e6));
        assertEq(attacker.failures(), 1, "refused");
        assertEq(
            keccak256(attacker.lastError()),
            keccak256(abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector)),
            "by the lock"
        );
        assertEq(token.balanceOf(address(attacker)), 1e6, "its part");
        assertEq(token.balanceOf(RECIPIENT), 99e6, "the rest");
        assertEq(token.balanceOf(address(settler)), 0, "nothing left");
    }

    /// @dev While a partner is paid, nothing of the vault can be sent to the settler.
    function test_TheVaultPaysHereOnlyWhileTheOwnPartTrades() external {
        IOrderSettler.PartnerTerms memory terms = _terms(100);
        _fillPartner(_signedFor(false, 1e18, 0, terms), terms, _own(1e18));
        assertTrue(!settler.isReceiving(), "closed");
        IOrderSettler.Order memory plain = _signed(false, 1e18, 0);
        plain.recipient = address(settler);
        plain = _sign(plain);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenRecipient.selector, address(settler)));
        settler.fillOnCurve(0, plain);
    }

    /* HELPERS */

    function _terms(uint256 bps) private pure returns (IOrderSettler.PartnerTerms memory) {
        return IOrderSettler.PartnerTerms(PARTNER, bps, APP_DATA);
    }

    function _signedFor(
        bool isBuy,
        uint256 amountIn,
        uint256 minAmountOut,
        IOrderSettler.PartnerTerms memory terms
    ) private returns (IOrderSettler.Order memory) {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        return _signFor(_order(tokenIn, tokenOut, amountIn, minAmountOut), terms);
    }

    function _own(uint256 amountIn) private pure returns (IOrderSettler.Route memory route) {
        route = _route(amountIn, 0);
        route.ownAmount = amountIn;
    }

    function _expectPartnerFilled(
        IOrderSettler.Order memory order,
        IOrderSettler.PartnerTerms memory terms,
        uint256 amount
    ) private {
        vm.expectEmit(address(settler));
        emit IOrderSettler.PartnerOrderFilled(
            order.owner,
            order.nonce,
            terms.partner,
            order.tokenOut,
            amount,
            terms.appData
        );
    }

    function _expectPartnerGot(bool isBuy, uint256 part) private view {
        assertEq((isBuy ? base : quote).balanceOf(PARTNER), part, "partner got");
        _expectNothingLeft();
    }
}
