// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {IExchange} from "../support/Orders.sol";
import {IMintableToken} from "../support/Interfaces.sol";
import {SettlerOrders} from "../support/SettlerOrders.sol";

/// @notice Signed orders by way of other tokens, over targets and over our own curve.
contract OrderSettlerHopsTest is SettlerOrders {
    uint256 private constant ALL = type(uint256).max;
    /// @dev Where `IExchange.trade` and the swaps of the entrypoint have what is sold.
    uint256 private constant TRADE_AT = 0x24;
    uint256 private constant SWAP_AT = 0x44;

    IMintableToken private third;

    function setUp() public override {
        super.setUp();
        third = _newToken("Third", 18);
        third.mint(signer, 10 ** 30);
        third.mint(address(exchange), 10 ** 30);
        _approvePermit2(signer, address(third));
    }

    function test_OverATargetAndThenTheCurve() external {
        uint256 own = _quote(false, 1e18);
        IOrderSettler.Order memory order = _sign(_order(address(third), address(quote), 3001e18, own));
        IOrderSettler.Route memory route = _via(
            _route(3001e18, 1e18),
            address(third),
            3000e18,
            3000e18,
            address(base),
            1e18
        );
        route = _stepAt(route, _ownStep(address(base), address(quote), ALL));
        _expectFilled(order, 3001e18, own, 1e18, false);
        _fillRoute(order, route);
        assertEq(third.balanceOf(signer), 10 ** 30 - 3001e18, "signer paid");
        assertEq(third.balanceOf(address(custodian)), 1e18, "fee");
        assertEq(base.balanceOf(address(custodian)), 10 ** 30 + 1e18, "vault got");
        assertEq(quote.balanceOf(RECIPIENT), own, "recipient got");
        _expectNothingAnywhere();
    }

    function test_OverTheCurveAndThenATarget() external {
        uint256 own = _quote(false, 1e18);
        IOrderSettler.Order memory order = _sign(_order(address(base), address(third), 1e18, 2990e18));
        IOrderSettler.Route memory route = _stepAt(_route(1e18, 0), _ownStep(address(base), address(quote), 1e18));
        route = _stepAt(route, _exchangeStep(address(quote), ALL, address(third), 2995e18));
        _fillRoute(order, route);
        assertEq(
            quote.balanceOf(address(exchange)),
            10 ** 30 + own,
            "the target got what the curve brought, and all of it"
        );
        assertEq(third.balanceOf(RECIPIENT), 2995e18, "recipient got");
        _expectNothingAnywhere();
    }

    function test_ThreeLegs() external {
        IMintableToken fourth = _newToken("Fourth", 8);
        fourth.mint(address(exchange), 10 ** 20);
        IOrderSettler.Order memory order = _sign(_order(address(third), address(fourth), 3000e18, 5e8));
        IOrderSettler.Route memory route = _via(
            _route(3000e18, 0),
            address(third),
            3000e18,
            3000e18,
            address(base),
            1e18
        );
        route = _stepAt(route, _ownStep(address(base), address(quote), ALL));
        route = _stepAt(route, _exchangeStep(address(quote), ALL, address(fourth), 5e8));
        _fillRoute(order, route);
        assertEq(fourth.balanceOf(RECIPIENT), 5e8, "recipient got");
        _expectNothingAnywhere();
    }

    /// @dev A purchase: every step fixes what it buys, and what one had to spare goes back to the owner as what it is.
    function test_BuysThroughTheCurve() external {
        uint256 cost = _quoteExactOutput(true, 1e18);
        IOrderSettler.Order memory order = _sign(_order(address(third), address(base), 3100e18, 1e18));
        IOrderSettler.Route memory route = _stepAt(
            _route(3100e18, 0),
            _exchangeStep(address(third), 3010e18, address(quote), cost + 5)
        );
        bytes memory data = abi.encodeCall(
            IEntrypoint.swapExactOutput,
            (address(quote), address(base), 1e18, cost + 5, address(settler), block.timestamp)
        );
        route = _stepAt(route, IOrderSettler.Call(address(entrypoint), address(quote), cost + 5, 0, data));
        (uint256 amountIn, uint256 amountOut) = _fillRoute(order, route);
        assertEq(amountIn, 3010e18, "in");
        assertEq(amountOut, 1e18, "out");
        assertEq(quote.balanceOf(signer), 10 ** 30 + 5, "the rest of what was bought on the way");
        _expectNothingAnywhere();
    }

    /// @dev Whatever a step leaves of what came before is the owner's, and its allowance ends with it.
    function test_ATargetThatTakesLessLeavesTheRestToTheOwner(uint256 taken) external {
        taken = bound(taken, 0, 1e18);
        IOrderSettler.Order memory order = _sign(_order(address(third), address(quote), 3000e18, 0));
        IOrderSettler.Route memory route = _via(
            _route(3000e18, 0),
            address(third),
            3000e18,
            3000e18,
            address(base),
            1e18
        );
        route = _via(route, address(base), taken, 1e18, address(quote), 7e6);
        _fillRoute(order, route);
        assertEq(base.balanceOf(signer), 10 ** 30 + 1e18 - taken, "owner");
        _expectNothingAnywhere();
    }

    function test_RevertWhen_AStepTakesMoreThanItWasGiven() external {
        // Of two ways over the same token, the first takes a unit of the second.
        IOrderSettler.Route memory route = _via(
            _route(3000e18, 0),
            address(third),
            1500e18,
            1500e18,
            address(base),
            1e18
        );
        route = _via(route, address(third), 1500e18, 1500e18, address(base), 1e18);
        route = _via(route, address(base), 1e18 + 1, 1e18, address(quote), 3000e6);
        route = _via(route, address(base), 1e18 - 1, 1e18, address(quote), 3000e6);
        IOrderSettler.Order memory order = _sign(_order(address(third), address(quote), 3000e18, 0));
        vm.prank(EXECUTOR);
        vm.expectRevert();
        settler.fillRoute(order, route);
    }

    function test_RevertWhen_TheLastStepBringsLess() external {
        IOrderSettler.Route memory route = _via(
            _route(3000e18, 0),
            address(third),
            3000e18,
            3000e18,
            address(base),
            1e18
        );
        route = _stepAt(route, _exchangeStep(address(base), ALL, address(quote), 2995e6 - 1));
        IOrderSettler.Order memory order = _sign(_order(address(third), address(quote), 3000e18, 2995e6));
        vm.prank(EXECUTOR);
        vm.expectRevert(
            abi.encodeWithSelector(IOrderSettler.InsufficientOutput.selector, uint256(2995e6 - 1), uint256(2995e6))
        );
        settler.fillRoute(order, route);
    }

    /// @dev What somebody sent here by mistake is sold with the rest, or given back with it.
    function test_StrayTokensOfTheWayGoToTheOrder() external {
        base.mint(address(settler), 3);
        IOrderSettler.Route memory route = _via(
            _route(3000e18, 0),
            address(third),
            3000e18,
            3000e18,
            address(base),
            1e18
        );
        route = _via(route, address(base), 1e18, 1e18, address(quote), 7e6);
        _fillRoute(_sign(_order(address(third), address(quote), 3000e18, 0)), route);
        assertEq(base.balanceOf(signer), 10 ** 30 + 3, "owner");
        _expectNothingAnywhere();
    }

    function test_RevertWhen_TheEntrypointIsCalledForAnythingElse() external {
        bytes[3] memory calls = [
            abi.encodeCall(IEntrypoint.swapWithCallback, (_request())),
            abi.encodeCall(IEntrypoint.collectInputFee, (_delivery(_signed(false, 1e18, 0), 1))),
            bytes("")
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            IOrderSettler.Order memory order = _signed(false, 1e18, 0);
            IOrderSettler.Route memory route = _step(_route(1e18, 0), address(entrypoint), address(base), 0, calls[i]);
            vm.prank(EXECUTOR);
            vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenTarget.selector, address(entrypoint)));
            settler.fillRoute(order, route);
        }
    }

    function test_RevertWhen_TheTokenOfAStepIsItsTarget() external {
        third.mint(address(settler), 1);
        vm.prank(OWNER);
        settler.setTarget(address(third), true);
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        bytes memory take = abi.encodeCall(IERC20.transfer, (EXECUTOR, 1));
        IOrderSettler.Route memory route = _step(_route(1e18, 0), address(third), address(third), 0, take);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenTarget.selector, address(third)));
        settler.fillRoute(order, route);
    }

    /// @dev Written over the selector, the amount could make an approval of a call that is none.
    function test_RevertWhen_TheAmountIsMisplaced() external {
        IOrderSettler.Call memory step = _exchangeStep(address(base), ALL, address(quote), 1);
        uint256[4] memory places = [uint256(0), 3, step.data.length - 0x1f, type(uint256).max];
        for (uint256 i = 0; i < places.length; ++i) {
            step.amountAt = places[i];
            IOrderSettler.Order memory order = _signed(false, 1e18, 0);
            vm.prank(EXECUTOR);
            vm.expectRevert(abi.encodeWithSelector(IOrderSettler.MisplacedAmount.selector, places[i]));
            settler.fillRoute(order, _stepAt(_route(1e18, 0), step));
        }
        (step.data, step.amountAt) = (hex"12345678", 4);
        IOrderSettler.Order memory tooShort = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.MisplacedAmount.selector, uint256(4)));
        settler.fillRoute(tooShort, _stepAt(_route(1e18, 0), step));
    }

    function test_RevertWhen_SomebodyElseHasTheVaultPayTheSettler() external {
        base.mint(TAKER, 1e18);
        vm.startPrank(TAKER);
        base.approve(address(entrypoint), 1e18);
        vm.expectRevert(abi.encodeWithSelector(ICustodian.ForbiddenRecipient.selector, address(settler)));
        entrypoint.swap(address(base), address(quote), 1e18, 0, address(settler), block.timestamp);
        vm.stopPrank();

        assertTrue(!settler.isReceiving(), "not receiving");
    }

    /// @dev The flag ends with the step: a target that is called after it can't have the vault pay here.
    function test_RevertWhen_ALaterStepHasTheVaultPayTheSettler() external {
        vm.prank(address(exchange));
        base.approve(address(entrypoint), 1e18);
        IOrderSettler.Route memory route = _stepAt(_route(1e18, 0), _ownStep(address(base), address(quote), 0.5e18));
        bytes memory again = abi.encodeCall(
            IEntrypoint.swap,
            (address(base), address(quote), 0.1e18, 0, address(settler), block.timestamp)
        );
        route = _step(
            route,
            address(exchange),
            address(base),
            0,
            abi.encodeCall(IExchange.callBack, (address(entrypoint), again))
        );
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(
            abi.encodeWithSelector(
                IOrderSettler.CallFailed.selector,
                address(exchange),
                abi.encodeWithSelector(ICustodian.ForbiddenRecipient.selector, address(settler))
            )
        );
        settler.fillRoute(order, route);
    }

    /// @dev Whatever the steps take and bring: nothing stays, nobody else has more than it was allowed, and the recipient has its minimum.
    function testFuzz_NothingStaysHere(
        uint256[4] calldata taken,
        uint256[4] calldata brought,
        uint256 minimum
    ) external {
        IOrderSettler.Route memory route = _route(2e18, 0);
        uint256 whole = 0;
        for (uint256 i = 0; i < 2; ++i) {
            uint256 bought = bound(brought[2 * i], 0, 1e18);
            uint256 out = bound(brought[2 * i + 1], 0, 1e9);
            route = _via(route, address(base), bound(taken[2 * i], 0, 1e18), 1e18, address(third), bought);
            route = _via(route, address(third), bound(taken[2 * i + 1], 0, bought), bought, address(quote), out);
            whole += out;
        }
        minimum = bound(minimum, 0, 2e9);
        IOrderSettler.Order memory order = _signed(false, 2e18, minimum);
        vm.prank(EXECUTOR);
        if (whole < minimum) vm.expectRevert();
        settler.fillRoute(order, route);
        assertEq(quote.balanceOf(RECIPIENT), whole < minimum ? 0 : whole, "recipient");
        assertTrue(base.balanceOf(signer) >= 10 ** 30 - 2e18, "owner");
        _expectNothingAnywhere();
    }

    /* SUPPORT */

    function _ownStep(
        address tokenIn,
        address tokenOut,
        uint256 amountIn
    ) private view returns (IOrderSettler.Call memory) {
        uint256 named = amountIn == ALL ? 0 : amountIn;
        bytes memory data = abi.encodeCall(
            IEntrypoint.swap,
            (tokenIn, tokenOut, named, 0, address(settler), block.timestamp)
        );
        return IOrderSettler.Call(address(entrypoint), tokenIn, amountIn, SWAP_AT, data);
    }

    function _exchangeStep(
        address tokenIn,
        uint256 amountIn,
        address tokenOut,
        uint256 amountOut
    ) private view returns (IOrderSettler.Call memory) {
        uint256 named = amountIn == ALL ? 0 : amountIn;
        bytes memory data = abi.encodeCall(IExchange.trade, (tokenIn, named, tokenOut, amountOut));
        return IOrderSettler.Call(address(exchange), tokenIn, amountIn, TRADE_AT, data);
    }

    function _expectNothingAnywhere() private view {
        _expectNothingLeft();
        assertEq(third.balanceOf(address(settler)), 0, "nothing left");
        address[3] memory tokens = [address(base), address(quote), address(third)];
        for (uint256 i = 0; i < tokens.length; ++i) {
            assertEq(IERC20(tokens[i]).allowance(address(settler), address(exchange)), 0, "no allowance");
            assertEq(IERC20(tokens[i]).allowance(address(settler), address(entrypoint)), 0, "no allowance");
        }
    }
}
